package oracle

import (
	"encoding/json"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
)

// profileOf reads the plugins and their arguments as kube-scheduler reads a configuration file, with
// its defaults. An unknown argument is an error.
func profileOf(world *World) (*config.KubeSchedulerProfile, error) {
	pluginConfig := []any{}
	for name, args := range world.PluginConfig {
		pluginConfig = append(pluginConfig, map[string]any{"name": name, "args": args})
	}
	file, err := json.Marshal(map[string]any{
		"apiVersion": "kubescheduler.config.k8s.io/v1",
		"kind":       "KubeSchedulerConfiguration",
		"profiles":   []any{map[string]any{"pluginConfig": pluginConfig}},
	})
	if err != nil {
		return nil, err
	}
	configuration := &config.KubeSchedulerConfiguration{}
	if err := runtime.DecodeInto(scheme.Codecs.UniversalDecoder(), file, configuration); err != nil {
		return nil, err
	}
	profile := &configuration.Profiles[0]
	profile.Plugins = &config.Plugins{
		QueueSort: config.PluginSet{Enabled: []config.Plugin{{Name: "PrioritySort"}}},
		Bind:      config.PluginSet{Enabled: []config.Plugin{{Name: "DefaultBinder"}}},
	}
	for _, name := range world.Plugins {
		profile.Plugins.MultiPoint.Enabled = append(profile.Plugins.MultiPoint.Enabled, config.Plugin{Name: name, Weight: 1})
	}
	return profile, nil
}

// noDeviceClasses is a cluster without DRA: no extended resource is a device class's. Scores by such
// a resource ask for it. Nothing else is asked for.
type noDeviceClasses struct {
	fwk.SharedDRAManager
}

func (noDeviceClasses) DeviceClassResolver() fwk.DeviceClassResolver { return noDeviceClasses{} }

func (noDeviceClasses) GetDeviceClass(v1.ResourceName) *resourcev1.DeviceClass { return nil }
