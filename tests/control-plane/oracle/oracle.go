// Package oracle answers what kube-scheduler's own plugins say of a cluster: which node each of them
// refuses for a pod, with which code and reasons, how each of them scores the nodes that are left,
// which pods would be evicted on the others, and where claims find devices. tests/differential compares Fairlead with it.
//
// A world is one line of JSON on standard input, its answer one line on standard output. No API
// server is involved: the plugins read a snapshot, and listers that hold what the world has.
package oracle

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	"k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

// World is a cluster at rest, and the pods to ask about. The plugins run in the order given, as in
// a profile's multiPoint list; PluginConfig has the arguments of some of them, as in a
// KubeSchedulerConfiguration. A world about which a plugin answers an error, rather than a
// rejection, ends the program: its objects contradict each other.
type World struct {
	Plugins      []string                   `json:"plugins"`
	PluginConfig map[string]json.RawMessage `json:"pluginConfig"`

	Namespaces []v1.Namespace `json:"namespaces"`
	Nodes      []v1.Node      `json:"nodes"`
	Pods       []v1.Pod       `json:"pods"`
	Ask        []v1.Pod       `json:"ask"`

	Services               []v1.Service               `json:"services"`
	ReplicationControllers []v1.ReplicationController `json:"replicationControllers"`
	ReplicaSets            []appsv1.ReplicaSet        `json:"replicaSets"`
	StatefulSets           []appsv1.StatefulSet       `json:"statefulSets"`

	PersistentVolumes      []v1.PersistentVolume          `json:"persistentVolumes"`
	PersistentVolumeClaims []v1.PersistentVolumeClaim     `json:"persistentVolumeClaims"`
	StorageClasses         []storagev1.StorageClass       `json:"storageClasses"`
	CSINodes               []storagev1.CSINode            `json:"csiNodes"`
	CSIDrivers             []storagev1.CSIDriver          `json:"csiDrivers"`
	CSIStorageCapacities   []storagev1.CSIStorageCapacity `json:"csiStorageCapacities"`
	VolumeAttachments      []storagev1.VolumeAttachment   `json:"volumeAttachments"`

	// Whether to ask which pods would be evicted.
	Preempt              bool                           `json:"preempt"`
	PodDisruptionBudgets []policyv1.PodDisruptionBudget `json:"podDisruptionBudgets"`

	// Asked about alone: a world with devices has nothing of the above.
	Devices *Devices `json:"devices,omitempty"`
}

// Refusal is the first refusal of a node; one without a code admits it.
type Refusal struct {
	Plugin  string   `json:"plugin,omitempty"`
	Code    string   `json:"code,omitempty"`
	Reasons []string `json:"reasons,omitempty"`
}

// Answer has, for each pod in the order asked, the refusals by the name of the node, and the scores
// of the others; and what would be evicted, if the world asks for that.
type Answer struct {
	Pods        []map[string]Refusal `json:"pods"`
	Scores      []Scores             `json:"scores"`
	Preemptions []*Preemption        `json:"preemptions,omitempty"`

	Devices []map[string]DeviceAnswer `json:"devices,omitempty"`
}

// Main serves until the input ends; its exit code.
func Main() int {
	metrics.Register()
	if err := serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "scheduler-oracle:", err)
		return 1
	}
	return 0
}

func serve(in io.Reader, out io.Writer) error {
	decoder := json.NewDecoder(bufio.NewReaderSize(in, 1<<20))
	buffered := bufio.NewWriter(out)
	encoder := json.NewEncoder(buffered)
	for number := 1; ; number++ {
		var world World
		if err := decoder.Decode(&world); errors.Is(err, io.EOF) {
			return buffered.Flush()
		} else if err != nil {
			return fmt.Errorf("world %d: %w", number, err)
		}
		answer, err := judge(context.Background(), &world)
		if err != nil {
			return fmt.Errorf("world %d: %w", number, err)
		}
		if err := encoder.Encode(answer); err != nil {
			return err
		}
	}
}

func judge(ctx context.Context, world *World) (*Answer, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if world.Devices != nil {
		devices, err := judgeDevices(ctx, world.Devices)
		return &Answer{Devices: devices}, err
	}
	snapshot := cache.NewSnapshot(pointers(world.Pods), pointers(world.Nodes))
	scheduler, err := newFramework(ctx, world, snapshot)
	if err != nil {
		return nil, err
	}
	answer := &Answer{}
	for i := range world.Ask {
		one, err := ask(ctx, scheduler, snapshot, world, &world.Ask[i])
		if err != nil {
			return nil, fmt.Errorf("pod %s/%s: %w", world.Ask[i].Namespace, world.Ask[i].Name, err)
		}
		answer.Pods = append(answer.Pods, one.refusals)
		answer.Scores = append(answer.Scores, one.scores)
		if world.Preempt {
			answer.Preemptions = append(answer.Preemptions, one.preemption)
		}
	}
	return answer, nil
}

func newFramework(ctx context.Context, world *World, snapshot *cache.Snapshot) (framework.Framework, error) {
	profile, err := profileOf(world)
	if err != nil {
		return nil, err
	}
	// Nothing is ever sent: the informers are filled by hand and not started.
	client, err := kubernetes.NewForConfig(&rest.Config{Host: "http://127.0.0.1:0"})
	if err != nil {
		return nil, err
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	scheduler, err := runtime.NewFramework(ctx, plugins.NewInTreeRegistry(), profile,
		runtime.WithClientSet(client), runtime.WithInformerFactory(factory), runtime.WithSnapshotSharedLister(snapshot),
		runtime.WithSharedDRAManager(noDeviceClasses{}), runtime.WithPodNominator(noNominations{}),
		runtime.WithSharedCSIManager(nodevolumelimits.NewCSIManager(factory.Storage().V1().CSINodes().Lister())))
	if err != nil {
		return nil, err
	}
	// Not earlier: plugins add their indexes to the informers.
	core, apps, storage := factory.Core().V1(), factory.Apps().V1(), factory.Storage().V1()
	return scheduler, errors.Join(
		fill(core.Namespaces().Informer(), world.Namespaces),
		fill(core.Services().Informer(), world.Services),
		fill(core.ReplicationControllers().Informer(), world.ReplicationControllers),
		fill(apps.ReplicaSets().Informer(), world.ReplicaSets),
		fill(apps.StatefulSets().Informer(), world.StatefulSets),
		fill(core.PersistentVolumes().Informer(), world.PersistentVolumes),
		fill(core.PersistentVolumeClaims().Informer(), world.PersistentVolumeClaims),
		fill(storage.StorageClasses().Informer(), world.StorageClasses),
		fill(storage.CSINodes().Informer(), world.CSINodes),
		fill(storage.CSIDrivers().Informer(), world.CSIDrivers),
		fill(storage.CSIStorageCapacities().Informer(), world.CSIStorageCapacities),
		fill(storage.VolumeAttachments().Informer(), world.VolumeAttachments),
		fill(factory.Policy().V1().PodDisruptionBudgets().Informer(), world.PodDisruptionBudgets))
}

func fill[T any](informer toolscache.SharedIndexInformer, objects []T) error {
	for _, object := range pointers(objects) {
		if err := informer.GetIndexer().Add(object); err != nil {
			return err
		}
	}
	return nil
}

// What is said of one pod.
type opinion struct {
	refusals   map[string]Refusal
	scores     Scores
	preemption *Preemption
}

// As schedulePod does it: a refusal before the filters is every node's, and so is one of all nodes
// that they leave out.
func ask(ctx context.Context, scheduler framework.Framework, snapshot *cache.Snapshot, world *World, pod *v1.Pod) (*opinion, error) {
	nodes, err := snapshot.NodeInfos().List()
	if err != nil {
		return nil, err
	}
	state := framework.NewCycleState()
	result, status, narrowing := scheduler.RunPreFilterPlugins(ctx, state, pod)
	if !status.IsSuccess() && !status.IsRejected() {
		return nil, status.AsError()
	}
	answer := &opinion{refusals: map[string]Refusal{}}
	var admitted, preemptible []fwk.NodeInfo
	for _, node := range nodes {
		name := node.Node().Name
		refused := status
		if refused.IsSuccess() && !result.AllNodes() && !result.NodeNames.Has(name) {
			refused = fwk.NewStatus(fwk.UnschedulableAndUnresolvable, fmt.Sprintf("node(s) didn't satisfy plugin(s) %v", sets.List(narrowing))).
				WithPlugin(strings.Join(sets.List(narrowing), " "))
		} else if refused.IsSuccess() {
			refused = scheduler.RunFilterPlugins(ctx, state, pod, node)
		}
		if !refused.IsSuccess() && !refused.IsRejected() {
			return nil, fmt.Errorf("node %s: %w", name, refused.AsError())
		}
		answer.refusals[name] = refusalOf(refused)
		if refused.IsSuccess() {
			admitted = append(admitted, node)
		} else if status.IsSuccess() && refused.Code() == fwk.Unschedulable {
			preemptible = append(preemptible, node)
		}
	}
	if world.Preempt {
		if answer.preemption, err = preempt(ctx, scheduler, state, pod, preemptible, pointers(world.PodDisruptionBudgets)); err != nil {
			return nil, err
		}
	}
	answer.scores, err = score(ctx, scheduler, state, pod, admitted)
	return answer, err
}

func refusalOf(status *fwk.Status) Refusal {
	if status.IsSuccess() {
		return Refusal{}
	}
	return Refusal{Plugin: status.Plugin(), Code: status.Code().String(), Reasons: status.Reasons()}
}

func pointers[T any](values []T) []*T {
	list := make([]*T, len(values))
	for i := range values {
		list[i] = &values[i]
	}
	return list
}
