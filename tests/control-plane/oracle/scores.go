package oracle

import (
	"context"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// Scores has, by plugin, the score of each node that the pod may go to: after NormalizeScore, 0..100,
// without the weight.
type Scores map[string]map[string]int64

// score is schedulePod's prioritizeNodes without extenders. `state` is the one of the filters,
// `nodes` those that they admit. Null for fewer than two nodes, which kube-scheduler does not score.
// A plugin that its PreScore skips for the pod is not in the result.
func score(ctx context.Context, scheduler framework.Framework, state fwk.CycleState, pod *v1.Pod, nodes []fwk.NodeInfo) (Scores, error) {
	if len(nodes) < 2 {
		return nil, nil
	}
	if status := scheduler.RunPreScorePlugins(ctx, state, pod, nodes); !status.IsSuccess() {
		return nil, status.AsError()
	}
	byNode, status := scheduler.RunScorePlugins(ctx, state, pod, nodes)
	if !status.IsSuccess() {
		return nil, status.AsError()
	}
	scores := Scores{}
	for _, node := range byNode {
		for _, plugin := range node.Scores {
			if scores[plugin.Name] == nil {
				scores[plugin.Name] = map[string]int64{}
			}
			// Weighted, but newFramework gives all plugins weight 1.
			scores[plugin.Name][node.Name] = plugin.Score
		}
	}
	return scores, nil
}
