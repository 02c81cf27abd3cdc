package fairlead

import (
	"context"
	"sync"
	"time"

	"fairlead.dev/kube-scheduler-plugin/guestsv1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// A pod that was granted a node while it was on its way into the queue is not found there: it is activated again.
	activateAgain = time.Second
	// What could not be asked about is asked again; no more often.
	retryPause = time.Second
	// A pod is forgotten so long after it was last asked about: it may have been deleted. It is asked about before.
	forgetAfter = 10 * time.Minute
)

type waitingPod struct {
	pod     *v1.Pod
	granted bool
	// Its node is known. If kube-scheduler refuses that, it tries the pod again when it is granted another one.
	placed bool
	since  time.Time
}

// waitingPods are the pods that have to wait for Fairlead, and those that were granted a node lately.
type waitingPods struct {
	activate func(map[string]*v1.Pod)

	mutex sync.Mutex
	pods  map[types.UID]*waitingPod
}

func newWaitingPods(activate func(map[string]*v1.Pod)) *waitingPods {
	return &waitingPods{activate: activate, pods: map[types.UID]*waitingPod{}}
}

func key(pod *v1.Pod) string { return pod.Namespace + "/" + pod.Name }

func (w *waitingPods) add(pod *v1.Pod) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.pods[pod.UID] = &waitingPod{pod: pod, since: time.Now()}
}

// place notes that the pod was told its node.
func (w *waitingPods) place(uid types.UID) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if waiting, known := w.pods[uid]; known {
		waiting.placed = true
		waiting.granted = false
	}
}

func (w *waitingPods) remove(uid types.UID) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	delete(w.pods, uid)
}

// granted moves the pod to the active queue.
func (w *waitingPods) granted(grant *guestsv1.Grant) {
	w.mutex.Lock()
	waiting, known := w.pods[types.UID(grant.Uid)]
	if known {
		waiting.granted = true
		waiting.placed = false
	}
	w.mutex.Unlock()
	if known {
		w.activate(map[string]*v1.Pod{key(waiting.pod): waiting.pod})
	}
}

// again returns the pods that have to be activated: those that were granted a node, or all.
func (w *waitingPods) again(all bool, now time.Time) map[string]*v1.Pod {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	pods := map[string]*v1.Pod{}
	for uid, waiting := range w.pods {
		if now.Sub(waiting.since) > forgetAfter {
			if !waiting.placed {
				pods[key(waiting.pod)] = waiting.pod
			}
			delete(w.pods, uid)
		} else if !waiting.placed && (all || waiting.granted) {
			pods[key(waiting.pod)] = waiting.pod
		}
	}
	return pods
}

// run watches grants until the context ends. `watch` returns when its stream has ended.
func (w *waitingPods) run(ctx context.Context, watch func(granted func(*guestsv1.Grant))) {
	go w.repeat(ctx)
	for ctx.Err() == nil {
		watch(w.granted)
		// Fairlead was away, or another replica leads: what was asked meanwhile has no answer.
		if pods := w.again(true, time.Now()); len(pods) > 0 {
			w.activate(pods)
		}
		pause(ctx, retryPause)
	}
}

func (w *waitingPods) repeat(ctx context.Context) {
	for ctx.Err() == nil {
		pause(ctx, activateAgain)
		if pods := w.again(false, time.Now()); len(pods) > 0 {
			w.activate(pods)
		}
	}
}

func pause(ctx context.Context, length time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(length):
	}
}
