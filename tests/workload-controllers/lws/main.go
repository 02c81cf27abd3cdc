// Command fairlead-test-lws runs the controllers of LeaderWorkerSet. They make StatefulSets; the pods come from
// kube-controller-manager's statefulset-controller, and garbage-collector-controller removes a group whose leader is gone.
//
// It has LWS's webhooks, because the labels group-index and worker-index of the pods, which the controllers themselves read, are
// put on by the one for pods, and the controllers take the defaults of the one for LeaderWorkerSets for granted. The one that
// validates pods does nothing, and is left out. So is gang scheduling. Nothing has to be set for the controllers' sake.
package main

import (
	"context"
	"os"

	"fairlead.dev/tests/workload-controllers/runner"
	admission "k8s.io/api/admissionregistration/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	lws "sigs.k8s.io/lws/api/leaderworkerset/v1"
	"sigs.k8s.io/lws/pkg/controllers"
	"sigs.k8s.io/lws/pkg/webhooks"
)

func main() {
	group, version := lws.GroupVersion.Group, lws.GroupVersion.Version
	changes := []admission.OperationType{admission.Create, admission.Update}
	// A worker: the webhook reads its index off its name.
	probe := &core.Pod{
		ObjectMeta: meta.ObjectMeta{
			Namespace: meta.NamespaceDefault, Name: "fairlead-probe-0-1",
			Labels:      map[string]string{lws.SetNameLabelKey: "fairlead-probe", lws.GroupIndexLabelKey: "0"},
			Annotations: map[string]string{lws.SizeAnnotationKey: "2"},
		},
		Spec: core.PodSpec{Containers: []core.Container{{Name: "probe", Image: "probe"}}},
	}
	os.Exit(runner.Main(runner.Program{
		Name:        "fairlead-test-lws",
		AddToScheme: []func(*runtime.Scheme) error{lws.AddToScheme},
		Kinds:       []client.Object{&lws.LeaderWorkerSet{}},
		Setup:       setup,
		Webhooks: []runner.Webhook{{
			Path: "/mutate-leaderworkerset-x-k8s-io-v1-leaderworkerset", Mutating: true,
			Group: group, Version: version, Resource: "leaderworkersets", Operations: changes,
		}, {
			Path:  "/validate-leaderworkerset-x-k8s-io-v1-leaderworkerset",
			Group: group, Version: version, Resource: "leaderworkersets", Operations: changes,
		}, {
			Path: "/mutate--v1-pod", Mutating: true,
			Version: "v1", Resource: "pods", Operations: []admission.OperationType{admission.Create},
			Label: lws.SetNameLabelKey, // LWS itself is asked for all pods, and lets these others pass.
		}},
		Probe:   probe,
		Changed: func(object client.Object) bool { return object.GetLabels()[lws.WorkerIndexLabelKey] != "" },
	}))
}

func setup(_ context.Context, manager ctrl.Manager) error {
	if err := controllers.SetupIndexes(manager.GetFieldIndexer()); err != nil {
		return err
	}
	api, kinds, events := manager.GetClient(), manager.GetScheme(), manager.GetEventRecorderFor("leaderworkerset")
	if err := controllers.NewLeaderWorkerSetReconciler(api, kinds, events).SetupWithManager(manager); err != nil {
		return err
	}
	if err := controllers.NewPodReconciler(api, kinds, events, nil).SetupWithManager(manager); err != nil {
		return err
	}
	if err := webhooks.SetupLeaderWorkerSetWebhook(manager); err != nil {
		return err
	}
	return webhooks.NewPodWebhook(nil).Setup(manager)
}
