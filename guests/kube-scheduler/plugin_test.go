package fairlead

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"fairlead.dev/kube-scheduler-plugin/guestsv1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kube-scheduler/framework"
)

// fakeFairlead answers what the test says.
type fakeFairlead struct {
	mutex  sync.Mutex
	answer *guestsv1.DecideResponse
	asked  *guestsv1.DecideRequest
	grants chan *guestsv1.Grant
}

func (f *fakeFairlead) say(state guestsv1.DecideResponse_State, node, reason string) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.answer = &guestsv1.DecideResponse{State: state, Node: node, Reason: reason}
}

func (f *fakeFairlead) decide(request *guestsv1.DecideRequest) (*guestsv1.DecideResponse, error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.asked = request
	if f.answer == nil {
		return nil, status.Error(codes.Unavailable, "does not lead")
	}
	return f.answer, nil
}

func serve(t *testing.T, fake *fakeFairlead) string {
	t.Helper()
	server := grpc.NewServer()
	server.RegisterService(&grpc.ServiceDesc{
		ServiceName: "fairlead.guests.v1.Guests",
		HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{
			MethodName: "Decide",
			Handler: func(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
				request := &guestsv1.DecideRequest{}
				if err := decode(request); err != nil {
					return nil, err
				}
				return fake.decide(request)
			},
		}},
		Streams: []grpc.StreamDesc{{
			StreamName:    "WatchGrants",
			ServerStreams: true,
			Handler: func(_ any, stream grpc.ServerStream) error {
				for {
					select {
					case <-stream.Context().Done():
						return nil
					case grant := <-fake.grants:
						if err := stream.SendMsg(grant); err != nil {
							return err
						}
					}
				}
			},
		}},
	}, nil)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return listener.Addr().String()
}

// state is a CycleState that holds what plugins write.
type state struct {
	framework.CycleState
	data map[framework.StateKey]framework.StateData
}

func (s *state) Read(key framework.StateKey) (framework.StateData, error) {
	if data, found := s.data[key]; found {
		return data, nil
	}
	return nil, framework.ErrNotFound
}

func (s *state) Write(key framework.StateKey, data framework.StateData) { s.data[key] = data }

func newState() *state { return &state{data: map[framework.StateKey]framework.StateData{}} }

func testPod() *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:   "ns",
			Name:        "p",
			UID:         "u",
			Labels:      map[string]string{"kai.scheduler/queue": "q"},
			Annotations: map[string]string{"pod-group-name": "g"},
		},
		Spec: v1.PodSpec{SchedulerName: "team"},
	}
}

func newPlugin(t *testing.T, address string) *plugin {
	t.Helper()
	client, err := dial(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.conn.Close() })
	return &plugin{
		client:       client,
		waiting:      newWaitingPods(func(map[string]*v1.Pod) {}),
		waitingPodOf: func(types.UID) framework.WaitingPod { return nil },
		ctx:          context.Background(),
	}
}

func TestAGrantedPodGoesToItsNode(t *testing.T) {
	fake := &fakeFairlead{}
	p := newPlugin(t, serve(t, fake))
	ctx := context.Background()
	fake.say(guestsv1.DecideResponse_GRANTED, "n", "")
	if got := p.PreEnqueue(ctx, testPod()); !got.IsSuccess() {
		t.Fatalf("PreEnqueue: %v", got)
	}
	cycle := newState()
	result, got := p.PreFilter(ctx, cycle, testPod(), nil)
	if !got.IsSuccess() || result.NodeNames.Len() != 1 || !result.NodeNames.Has("n") {
		t.Fatalf("PreFilter: %v, %v", result, got)
	}
	if asked := fake.asked.Pod; asked.Namespace != "ns" || asked.Name != "p" || asked.Uid != "u" || asked.SchedulerName != "team" ||
		asked.Labels["kai.scheduler/queue"] != "q" || asked.Annotations["pod-group-name"] != "g" {
		t.Errorf("asked about %v", asked)
	}
	if got := p.Reserve(ctx, cycle, testPod(), "n"); !got.IsSuccess() {
		t.Errorf("Reserve: %v", got)
	}
	if got, _ := p.Permit(ctx, cycle, testPod(), "n"); !got.IsSuccess() {
		t.Errorf("Permit: %v", got)
	}
	if got := p.Reserve(ctx, cycle, testPod(), "m"); got.IsSuccess() {
		t.Error("Reserve on another node succeeds")
	}
	fake.say(guestsv1.DecideResponse_WAITS, "", "QueueLimitReached: full")
	if got, _ := p.Permit(ctx, cycle, testPod(), "n"); got.Code() != framework.UnschedulableAndUnresolvable {
		t.Errorf("Permit after the end of the grant: %v", got)
	}
}

// waitingAtPermit is a pod that waits at Permit; what becomes of it comes out of `end`.
type waitingAtPermit struct {
	framework.WaitingPod
	end chan string
}

func (w *waitingAtPermit) Allow(string) { w.end <- "allowed" }

func (w *waitingAtPermit) Reject(_, message string) bool {
	w.end <- message
	return true
}

func TestAPodOfAGangWaitsAtPermit(t *testing.T) {
	for _, test := range []struct {
		state             guestsv1.DecideResponse_State
		node, reason, end string
	}{
		{guestsv1.DecideResponse_GRANTED, "n", "", "allowed"},
		{guestsv1.DecideResponse_WAITS, "", "BindingRefused: too late", "BindingRefused: too late"},
		{guestsv1.DecideResponse_GRANTED, "m", "", "the node was granted no longer"},
	} {
		fake := &fakeFairlead{}
		p := newPlugin(t, serve(t, fake))
		ctx, cancel := context.WithCancel(context.Background())
		waiting := &waitingAtPermit{end: make(chan string, 1)}
		asked := 0
		p.waitingPodOf = func(uid types.UID) framework.WaitingPod {
			// The framework does not know it at once.
			if asked++; asked == 1 || uid != "u" {
				return nil
			}
			return waiting
		}
		fake.say(guestsv1.DecideResponse_HELD, "n", "")
		cycle := newState()
		cycle.Write(stateKey, &say{node: "n"})
		got, timeout := p.Permit(ctx, cycle, testPod(), "n")
		if got.Code() != framework.Wait || timeout != permitTimeout {
			t.Fatalf("Permit: %v, %v", got, timeout)
		}
		if fake.asked.ReservedOn != "n" {
			t.Errorf("asked about %v", fake.asked)
		}
		cancel() // as the framework does after Permit
		fake.say(test.state, test.node, test.reason)
		if end := <-waiting.end; end != test.end {
			t.Errorf("%v on %q: %s", test.state, test.node, end)
		}
	}
}

func TestNothingWaitsForAPodThatIsGone(t *testing.T) {
	fake := &fakeFairlead{}
	p := newPlugin(t, serve(t, fake))
	fake.say(guestsv1.DecideResponse_HELD, "n", "")
	asked := 0
	p.waitingPodOf = func(types.UID) framework.WaitingPod {
		if asked++; asked == 1 {
			return &waitingAtPermit{end: make(chan string, 1)}
		}
		return nil
	}
	p.awaitGang(context.Background(), testPod(), "n")
	if asked != 2 {
		t.Errorf("looked for %d times", asked)
	}
}

func TestAPodThatWaitsIsRejectedWithTheReason(t *testing.T) {
	fake := &fakeFairlead{}
	p := newPlugin(t, serve(t, fake))
	ctx := context.Background()
	fake.say(guestsv1.DecideResponse_WAITS, "", "QueueLimitReached: full")
	cycle := newState()
	_, filtered := p.PreFilter(ctx, cycle, testPod(), nil)
	for point, got := range map[string]*framework.Status{"PreEnqueue": p.PreEnqueue(ctx, testPod()), "PreFilter": filtered} {
		if got.Code() != framework.UnschedulableAndUnresolvable || got.Message() != "QueueLimitReached: full" {
			t.Errorf("%s: %v", point, got)
		}
	}
	if _, got := p.PostFilter(ctx, cycle, testPod(), nil); got.Code() != framework.UnschedulableAndUnresolvable {
		t.Errorf("PostFilter lets others evict: %v", got)
	}
	fake.say(guestsv1.DecideResponse_UNDECIDED, "", "")
	if got := p.PreEnqueue(ctx, testPod()); !strings.Contains(got.Message(), "not decided") {
		t.Errorf("PreEnqueue: %v", got)
	}
}

func TestAPodThatIsNotOursPasses(t *testing.T) {
	fake := &fakeFairlead{}
	p := newPlugin(t, serve(t, fake))
	ctx := context.Background()
	fake.say(guestsv1.DecideResponse_NOT_OURS, "", "")
	cycle := newState()
	if got := p.PreEnqueue(ctx, testPod()); !got.IsSuccess() {
		t.Errorf("PreEnqueue: %v", got)
	}
	if result, got := p.PreFilter(ctx, cycle, testPod(), nil); !got.IsSkip() || result != nil {
		t.Errorf("PreFilter: %v, %v", result, got)
	}
	if got := p.Reserve(ctx, cycle, testPod(), "n"); !got.IsSuccess() {
		t.Errorf("Reserve: %v", got)
	}
	if _, got := p.PostFilter(ctx, cycle, testPod(), nil); got.Code() != framework.Unschedulable {
		t.Errorf("PostFilter keeps others from evicting: %v", got)
	}
	if len(p.waiting.pods) != 0 {
		t.Errorf("remembers %v", p.waiting.pods)
	}
}

func TestWithoutFairleadPodsWait(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	_ = listener.Close()
	for _, p := range []*plugin{newPlugin(t, address), newPlugin(t, serve(t, &fakeFairlead{}))} {
		if got := p.PreEnqueue(context.Background(), testPod()); !strings.Contains(got.Message(), "Fairlead does not answer") {
			t.Errorf("PreEnqueue: %v", got)
		}
		// An error is tried again by time.
		if _, got := p.PreFilter(context.Background(), newState(), testPod(), nil); got.Code() != framework.Error {
			t.Errorf("PreFilter: %v", got)
		}
		if len(p.waiting.pods) != 1 {
			t.Error("the pod is not remembered")
		}
	}
}

func TestAGrantActivatesThePodUntilItIsAskedAbout(t *testing.T) {
	fake := &fakeFairlead{grants: make(chan *guestsv1.Grant)}
	p := newPlugin(t, serve(t, fake))
	activated := make(chan string, 100)
	p.waiting.activate = func(pods map[string]*v1.Pod) {
		for name := range pods {
			activated <- name
		}
	}
	fake.say(guestsv1.DecideResponse_WAITS, "", "full")
	p.PreEnqueue(context.Background(), testPod())
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go p.waiting.run(ctx, func(granted func(*guestsv1.Grant)) { _ = p.client.watch(ctx, granted) })
	fake.grants <- &guestsv1.Grant{Namespace: "ns", Name: "other", Uid: "x", Node: "n"}
	fake.grants <- &guestsv1.Grant{Namespace: "ns", Name: "p", Uid: "u", Node: "n"}
	// Twice: the first time it may not be in the queue yet.
	for range 2 {
		if got := <-activated; got != "ns/p" {
			t.Fatalf("activated %s", got)
		}
	}
	fake.say(guestsv1.DecideResponse_GRANTED, "n", "")
	p.PreEnqueue(context.Background(), testPod())
	if pods := p.waiting.again(true, time.Now()); len(pods) != 0 {
		t.Errorf("still waits: %v", pods)
	}
	// Its scheduler may refuse the node. Then Fairlead grants another one.
	fake.grants <- &guestsv1.Grant{Namespace: "ns", Name: "p", Uid: "u", Node: "m"}
	if got := <-activated; got != "ns/p" {
		t.Fatalf("activated %s", got)
	}
	p.PreEnqueue(context.Background(), testPod())
	if pods := p.waiting.again(false, time.Now().Add(forgetAfter+time.Second)); len(pods) != 0 || len(p.waiting.pods) != 0 {
		t.Errorf("activated %v, remembered %v", pods, p.waiting.pods)
	}
}

func TestPodsAreForgotten(t *testing.T) {
	waiting := newWaitingPods(nil)
	waiting.add(testPod())
	now := time.Now()
	if pods := waiting.again(false, now); len(pods) != 0 {
		t.Errorf("activates %v without a grant", pods)
	}
	if pods := waiting.again(false, now.Add(forgetAfter+time.Second)); len(pods) != 1 || len(waiting.pods) != 0 {
		t.Errorf("activated %v, remembered %v", pods, waiting.pods)
	}
}

func TestArgs(t *testing.T) {
	for _, raw := range []string{"", "{}", `{"address":7}`} {
		if _, err := readArgs(&runtime.Unknown{Raw: []byte(raw)}); err == nil {
			t.Errorf("%q is accepted", raw)
		}
	}
	if _, err := readArgs(nil); err == nil {
		t.Error("no args are accepted")
	}
	args, err := readArgs(&runtime.Unknown{Raw: []byte(`{"address":"h:1"}`)})
	if err != nil || args.Address != "h:1" {
		t.Errorf("%v, %v", args, err)
	}
}
