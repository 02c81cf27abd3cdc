package oracle

import (
	"context"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
)

// Victims of a node, as namespace/name, the most important first.
type Victims struct {
	Pods       []string `json:"pods"`
	Violations int64    `json:"violations"`
}

// Preemption has the victims of each node on which there are any, and the node that DefaultPreemption
// chooses, or "".
type Preemption struct {
	Nodes  map[string]Victims `json:"nodes"`
	Chosen string             `json:"chosen"`
}

// preempt is DefaultPreemption's dry run on all of the nodes, and its choice. `state` is the one of
// the filters.
func preempt(ctx context.Context, scheduler framework.Framework, state fwk.CycleState, pod *v1.Pod, nodes []fwk.NodeInfo, budgets []*policyv1.PodDisruptionBudget) (*Preemption, error) {
	answer := &Preemption{Nodes: map[string]Victims{}}
	if len(nodes) == 0 {
		return answer, nil
	}
	plugin, err := defaultpreemption.New(ctx, &config.DefaultPreemptionArgs{MinCandidateNodesPercentage: 100}, scheduler, feature.Features{})
	if err != nil {
		return nil, err
	}
	// One more candidate than there can be, so that none is left out.
	candidates, _, err := plugin.Evaluator.DryRunPreemption(ctx, state, pod, nodes, budgets, 0, int32(len(nodes)+1))
	if err != nil {
		return nil, err
	}
	for _, candidate := range candidates {
		victims := Victims{Violations: candidate.Victims().NumPDBViolations}
		for _, victim := range candidate.Victims().Pods {
			victims.Pods = append(victims.Pods, victim.Namespace+"/"+victim.Name)
		}
		answer.Nodes[candidate.Name()] = victims
	}
	if best := plugin.Evaluator.SelectCandidate(ctx, candidates); best != nil {
		answer.Chosen = best.Name()
	}
	return answer, nil
}

// noNominations is a cluster in which no pod waits for a node that it was promised.
type noNominations struct{}

func (noNominations) AddNominatedPod(klog.Logger, fwk.PodInfo, *fwk.NominatingInfo) {}
func (noNominations) DeleteNominatedPodIfExists(*v1.Pod)                            {}
func (noNominations) UpdateNominatedPod(klog.Logger, *v1.Pod, fwk.PodInfo)          {}
func (noNominations) NominatedPodsForNode(string) []fwk.PodInfo                     { return nil }
