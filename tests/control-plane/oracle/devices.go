package oracle

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
)

// Devices asks which nodes have devices for claims that a pod brings along together. ResourceClaims
// are those that have devices already.
type Devices struct {
	Nodes          []string                      `json:"nodes"`
	Labels         map[string]map[string]string  `json:"labels"` // of nodes, by name
	ResourceSlices []resourceapi.ResourceSlice   `json:"resourceSlices"`
	DeviceClasses  []resourceapi.DeviceClass     `json:"deviceClasses"`
	ResourceClaims []resourceapi.ResourceClaim   `json:"resourceClaims"`
	Asks           [][]resourceapi.ResourceClaim `json:"asks"`
}

// DeviceAnswer is what the allocator of the plugin DynamicResources says of one node.
type DeviceAnswer struct {
	Allocated bool   `json:"allocated"`
	Error     string `json:"error,omitempty"`
	// Chosen has, of each claim, the index of the alternative that each request with firstAvailable
	// got.
	Chosen [][]int `json:"chosen,omitempty"`
}

type deviceClasses map[string]*resourceapi.DeviceClass

func (c deviceClasses) List() ([]*resourceapi.DeviceClass, error) {
	var list []*resourceapi.DeviceClass
	for _, class := range c {
		list = append(list, class)
	}
	return list, nil
}

func (c deviceClasses) Get(name string) (*resourceapi.DeviceClass, error) {
	if class, ok := c[name]; ok {
		return class, nil
	}
	return nil, fmt.Errorf("no device class %s", name)
}

// One for all worlds: to compile an expression takes longer than all else.
var (
	deviceFeatures = structured.Features{
		AdminAccess: true, ConsumableCapacity: true, DeviceTaints: true, PartitionableDevices: true,
		PrioritizedList: true,
	}
	expressions = cel.NewCache(1000, cel.Features{EnableConsumableCapacity: true})
)

// alternatives is what the plugin's score is computed from.
func alternatives(claim *resourceapi.ResourceClaim, result *resourceapi.AllocationResult) []int {
	got := sets.New[string]()
	for _, device := range result.Devices.Results {
		got.Insert(device.Request)
	}
	chosen := []int{}
	for _, request := range claim.Spec.Devices.Requests {
		for i, option := range request.FirstAvailable {
			if got.Has(request.Name + "/" + option.Name) {
				chosen = append(chosen, i)
			}
		}
	}
	return chosen
}

// judgeDevices answers by ask, then by the name of the node.
func judgeDevices(ctx context.Context, world *Devices) ([]map[string]DeviceAnswer, error) {
	classes := deviceClasses{}
	for i := range world.DeviceClasses {
		classes[world.DeviceClasses[i].Name] = &world.DeviceClasses[i]
	}
	taken := sets.New[structured.DeviceID]()
	for _, claim := range world.ResourceClaims {
		for _, result := range claim.Status.Allocation.Devices.Results {
			if result.AdminAccess == nil || !*result.AdminAccess {
				taken.Insert(structured.MakeDeviceID(result.Driver, result.Pool, result.Device))
			}
		}
	}
	var answers []map[string]DeviceAnswer
	for _, claims := range world.Asks {
		answer := map[string]DeviceAnswer{}
		for _, name := range world.Nodes {
			// An allocator is for the claims of one pod.
			allocator, err := structured.NewAllocator(ctx, deviceFeatures,
				structured.AllocatedState{AllocatedDevices: taken}, classes,
				pointers(world.ResourceSlices), expressions)
			if err != nil {
				return nil, err
			}
			node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: world.Labels[name]}}
			results, err := allocator.Allocate(ctx, node, pointers(claims))
			one := DeviceAnswer{Allocated: err == nil && len(results) == len(claims)}
			if err != nil {
				one.Error = err.Error()
			}
			if one.Allocated {
				for i := range claims {
					one.Chosen = append(one.Chosen, alternatives(&claims[i], &results[i]))
				}
			}
			answer[name] = one
		}
		answers = append(answers, answer)
	}
	return answers, nil
}
