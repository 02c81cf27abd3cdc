// Package fairlead is a plugin of kube-scheduler that has no opinion of its own: it asks Fairlead when a pod may start, and on
// which node (docs/guests.md). It is compiled into a kube-scheduler:
//
//	app.NewSchedulerCommand(app.WithPlugin(fairlead.Name, fairlead.New))
//
// A pod that Fairlead has not granted a node waits before the active queue (PreEnqueue), so that it costs kube-scheduler nothing,
// and is moved to it when Fairlead says so. PreFilter narrows the nodes to the one that was granted; PostFilter keeps other
// plugins from evicting for it; Reserve and Permit look whether the grant still stands.
//
// Pods about which Fairlead has no say pass everywhere. If Fairlead does not answer, pods wait, and are tried again.
package fairlead

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"fairlead.dev/kube-scheduler-plugin/guestsv1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	"k8s.io/kube-scheduler/framework"
)

// Name is the plugin's in KubeSchedulerConfiguration.
const Name = "Fairlead"

const stateKey = "fairlead.dev/say"

// How long the points may wait for Fairlead: PreEnqueue runs in an event handler, which other pods wait for.
const (
	enqueueTimeout = 200 * time.Millisecond
	callTimeout    = 2 * time.Second
	decisionWaitMS = 1000
	// How often Fairlead is asked for a pod that waits for its gang, and how long it may wait. A grant ends much earlier (guests.bindTimeout).
	permitPause   = 250 * time.Millisecond
	permitTimeout = 10 * time.Minute
)

// Args are the plugin's in pluginConfig.
type Args struct {
	// Address of Fairlead's guests.bindAddress: "fairlead.fairlead:9443".
	Address string `json:"address"`
}

// waitingPodOf is framework.Handle.GetWaitingPod: the pod, if it waits at Permit.
type waitingPodOf func(types.UID) framework.WaitingPod

type plugin struct {
	client       *client
	waiting      *waitingPods
	waitingPodOf waitingPodOf
	// Lives as long as the scheduler.
	ctx context.Context
}

var (
	_ framework.PreEnqueuePlugin  = &plugin{}
	_ framework.PreFilterPlugin   = &plugin{}
	_ framework.PostFilterPlugin  = &plugin{}
	_ framework.ReservePlugin     = &plugin{}
	_ framework.PermitPlugin      = &plugin{}
	_ framework.EnqueueExtensions = &plugin{}
)

func readArgs(configuration runtime.Object) (Args, error) {
	var args Args
	if unknown, ok := configuration.(*runtime.Unknown); ok && len(unknown.Raw) > 0 {
		if err := json.Unmarshal(unknown.Raw, &args); err != nil {
			return args, fmt.Errorf("the args of plugin %s: %w", Name, err)
		}
	}
	if args.Address == "" {
		return args, fmt.Errorf("the args of plugin %s: address is missing", Name)
	}
	return args, nil
}

// New makes the plugin. It connects when it is needed.
func New(ctx context.Context, configuration runtime.Object, handle framework.Handle) (framework.Plugin, error) {
	args, err := readArgs(configuration)
	if err != nil {
		return nil, err
	}
	client, err := dial(args.Address)
	if err != nil {
		return nil, fmt.Errorf("address %q of plugin %s: %w", args.Address, Name, err)
	}
	logger := klog.FromContext(ctx).WithName(Name)
	waiting := newWaitingPods(func(pods map[string]*v1.Pod) { handle.Activate(logger, pods) })
	go waiting.run(ctx, func(granted func(*guestsv1.Grant)) {
		err := client.watch(ctx, granted)
		logger.V(2).Info("the watch of grants has ended", "address", args.Address, "err", err)
	})
	return &plugin{client: client, waiting: waiting, waitingPodOf: handle.GetWaitingPod, ctx: ctx}, nil
}

func (*plugin) Name() string { return Name }

// EventsToRegister is empty: no event of the cluster lets a pod in, but what Fairlead says.
func (*plugin) EventsToRegister(context.Context) ([]framework.ClusterEventWithHint, error) {
	return nil, nil
}

// ask returns what Fairlead says. A pod that has to wait is remembered, before the question, so that no answer is missed.
func (p *plugin) ask(ctx context.Context, pod *v1.Pod, timeout time.Duration, waitMS uint32, reservedOn string) (*guestsv1.DecideResponse, error) {
	p.waiting.add(pod)
	asking, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	answer, err := p.client.decide(asking, pod, waitMS, reservedOn)
	if err != nil {
		return nil, fmt.Errorf("Fairlead does not answer: %w", err)
	}
	switch answer.State {
	case guestsv1.DecideResponse_NOT_OURS:
		p.waiting.remove(pod.UID)
	case guestsv1.DecideResponse_GRANTED, guestsv1.DecideResponse_HELD:
		p.waiting.place(pod.UID)
	}
	return answer, nil
}

func mayPass(answer *guestsv1.DecideResponse) bool {
	switch answer.State {
	case guestsv1.DecideResponse_NOT_OURS, guestsv1.DecideResponse_GRANTED, guestsv1.DecideResponse_HELD:
		return true
	}
	return false
}

func waits(answer *guestsv1.DecideResponse) *framework.Status {
	reason := answer.Reason
	if reason == "" {
		reason = "Fairlead has not decided about the pod yet"
	}
	return framework.NewStatus(framework.UnschedulableAndUnresolvable, reason)
}

func (p *plugin) PreEnqueue(ctx context.Context, pod *v1.Pod) *framework.Status {
	answer, err := p.ask(ctx, pod, enqueueTimeout, 0, "")
	if err != nil {
		return framework.NewStatus(framework.UnschedulableAndUnresolvable, err.Error())
	}
	if mayPass(answer) {
		return nil
	}
	return waits(answer)
}

// say is what PreFilter heard of a pod, for the points after it.
type say struct{ node string }

func (s *say) Clone() framework.StateData { return s }

func (p *plugin) PreFilter(ctx context.Context, state framework.CycleState, pod *v1.Pod, _ []framework.NodeInfo) (*framework.PreFilterResult, *framework.Status) {
	answer, err := p.ask(ctx, pod, callTimeout, decisionWaitMS, "")
	if err != nil {
		return nil, framework.AsStatus(err)
	}
	if answer.State == guestsv1.DecideResponse_NOT_OURS {
		return nil, framework.NewStatus(framework.Skip)
	}
	state.Write(stateKey, &say{node: answer.Node})
	if answer.State != guestsv1.DecideResponse_GRANTED {
		return nil, waits(answer)
	}
	return &framework.PreFilterResult{NodeNames: sets.New(answer.Node)}, nil
}

func (*plugin) PreFilterExtensions() framework.PreFilterExtensions { return nil }

func isOurs(state framework.CycleState) bool {
	_, err := state.Read(stateKey)
	return err == nil
}

// PostFilter ends the search for victims: Fairlead evicts for its pods.
func (*plugin) PostFilter(_ context.Context, state framework.CycleState, _ *v1.Pod, _ framework.NodeToStatusReader) (*framework.PostFilterResult, *framework.Status) {
	if !isOurs(state) {
		return nil, framework.NewStatus(framework.Unschedulable)
	}
	return nil, framework.NewStatus(framework.UnschedulableAndUnresolvable, "Fairlead makes room for the pods of its queues")
}

// refuses says why the pod may not go to the node, nil if it may. HELD: it may, and is not to be bound yet.
func refuses(answer *guestsv1.DecideResponse, node string) *framework.Status {
	switch answer.State {
	case guestsv1.DecideResponse_GRANTED, guestsv1.DecideResponse_HELD:
		if answer.Node == node {
			return nil
		}
		return framework.AsStatus(errors.New("the node was granted no longer"))
	case guestsv1.DecideResponse_NOT_OURS:
		return framework.AsStatus(errors.New("the node was granted no longer"))
	}
	return waits(answer)
}

func (p *plugin) Reserve(ctx context.Context, state framework.CycleState, pod *v1.Pod, node string) *framework.Status {
	if !isOurs(state) {
		return nil
	}
	answer, err := p.ask(ctx, pod, callTimeout, 0, "")
	if err != nil {
		return framework.AsStatus(err)
	}
	return refuses(answer, node)
}

// Unreserve does nothing: a grant that is not used ends by itself.
func (*plugin) Unreserve(context.Context, framework.CycleState, *v1.Pod, string) {}

// Permit lets the pod be bound when Fairlead says so: of a gang when all are reserved.
func (p *plugin) Permit(ctx context.Context, state framework.CycleState, pod *v1.Pod, node string) (*framework.Status, time.Duration) {
	if !isOurs(state) {
		return nil, 0
	}
	answer, err := p.ask(ctx, pod, callTimeout, 0, node)
	if err != nil {
		return framework.AsStatus(err), 0
	}
	if refused := refuses(answer, node); refused != nil {
		return refused, 0
	}
	if answer.State != guestsv1.DecideResponse_HELD {
		return nil, 0
	}
	// The context of this call ends before the pod has waited.
	go p.awaitGang(p.ctx, pod, node)
	return framework.NewStatus(framework.Wait), permitTimeout
}

// awaitGang ends when the pod waits no longer, by its own doing or that of another plugin.
func (p *plugin) awaitGang(ctx context.Context, pod *v1.Pod, node string) {
	ctx, cancel := context.WithTimeout(ctx, permitTimeout)
	defer cancel()
	ticker := time.NewTicker(permitPause)
	defer ticker.Stop()
	for waited := false; ; {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		waiting := p.waitingPodOf(pod.UID)
		if waiting == nil {
			// Permit may not have returned to the framework yet.
			if waited {
				return
			}
			continue
		}
		waited = true
		answer, err := p.ask(ctx, pod, callTimeout, 0, node)
		if err != nil {
			continue // Fairlead decides anew when it is there again
		}
		if refused := refuses(answer, node); refused != nil {
			waiting.Reject(Name, refused.Message())
			return
		}
		if answer.State == guestsv1.DecideResponse_GRANTED {
			waiting.Allow(Name)
			return
		}
	}
}
