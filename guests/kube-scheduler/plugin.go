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
)

// Args are the plugin's in pluginConfig.
type Args struct {
	// Address of Fairlead's guests.bindAddress: "fairlead.fairlead:9443".
	Address string `json:"address"`
}

type plugin struct {
	client  *client
	waiting *waitingPods
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
	return &plugin{client: client, waiting: waiting}, nil
}

func (*plugin) Name() string { return Name }

// EventsToRegister is empty: no event of the cluster lets a pod in, but what Fairlead says.
func (*plugin) EventsToRegister(context.Context) ([]framework.ClusterEventWithHint, error) {
	return nil, nil
}

// ask returns what Fairlead says. A pod that has to wait is remembered, before the question, so that no answer is missed.
func (p *plugin) ask(ctx context.Context, pod *v1.Pod, timeout time.Duration, waitMS uint32) (*guestsv1.DecideResponse, error) {
	p.waiting.add(pod)
	asking, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	answer, err := p.client.decide(asking, pod, waitMS)
	if err != nil {
		return nil, fmt.Errorf("Fairlead does not answer: %w", err)
	}
	if mayPass(answer) {
		p.waiting.remove(pod.UID)
	}
	return answer, nil
}

func mayPass(answer *guestsv1.DecideResponse) bool {
	return answer.State == guestsv1.DecideResponse_NOT_OURS || answer.State == guestsv1.DecideResponse_GRANTED
}

func waits(answer *guestsv1.DecideResponse) *framework.Status {
	reason := answer.Reason
	if reason == "" {
		reason = "Fairlead has not decided about the pod yet"
	}
	return framework.NewStatus(framework.UnschedulableAndUnresolvable, reason)
}

func (p *plugin) PreEnqueue(ctx context.Context, pod *v1.Pod) *framework.Status {
	answer, err := p.ask(ctx, pod, enqueueTimeout, 0)
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
	answer, err := p.ask(ctx, pod, callTimeout, decisionWaitMS)
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

// stillGranted asks whether the pod may be bound to the node.
func (p *plugin) stillGranted(ctx context.Context, state framework.CycleState, pod *v1.Pod, node string) *framework.Status {
	if !isOurs(state) {
		return nil
	}
	answer, err := p.ask(ctx, pod, callTimeout, 0)
	if err != nil {
		return framework.AsStatus(err)
	}
	if answer.State == guestsv1.DecideResponse_GRANTED && answer.Node == node {
		return nil
	}
	if answer.State == guestsv1.DecideResponse_NOT_OURS || answer.State == guestsv1.DecideResponse_GRANTED {
		return framework.AsStatus(errors.New("the node was granted no longer"))
	}
	return waits(answer)
}

func (p *plugin) Reserve(ctx context.Context, state framework.CycleState, pod *v1.Pod, node string) *framework.Status {
	return p.stillGranted(ctx, state, pod, node)
}

// Unreserve does nothing: a grant that is not used ends by itself.
func (*plugin) Unreserve(context.Context, framework.CycleState, *v1.Pod, string) {}

func (p *plugin) Permit(ctx context.Context, state framework.CycleState, pod *v1.Pod, node string) (*framework.Status, time.Duration) {
	return p.stillGranted(ctx, state, pod, node), 0
}
