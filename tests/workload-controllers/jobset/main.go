// Command fairlead-test-jobset runs JobSet's controller. It makes batch Jobs; their pods come from kube-controller-manager's
// job-controller.
//
// It has JobSet's own webhooks for JobSets, because the controller does not work without their defaults: it takes for granted
// that spec.network is there, and a Job is refused without a restartPolicy. The webhooks for pods, which only exclusive
// placement needs, are left out, so a test must not set the annotation alpha.jobset.sigs.k8s.io/exclusive-topology.
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
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	"sigs.k8s.io/jobset/pkg/controllers"
	"sigs.k8s.io/jobset/pkg/webhooks"
)

func main() {
	group, version := jobset.GroupVersion.Group, jobset.GroupVersion.Version
	probe := &jobset.JobSet{ObjectMeta: meta.ObjectMeta{Namespace: meta.NamespaceDefault, GenerateName: "probe-"}}
	probe.Spec.ReplicatedJobs = []jobset.ReplicatedJob{{Name: "probe", GroupName: "probe", Replicas: 1}}
	probe.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec.Containers = []core.Container{{Name: "probe", Image: "probe"}}
	os.Exit(runner.Main(runner.Program{
		Name:        "fairlead-test-jobset",
		AddToScheme: []func(*runtime.Scheme) error{jobset.AddToScheme},
		Kinds:       []client.Object{&jobset.JobSet{}},
		Setup:       setup,
		Webhooks: []runner.Webhook{{
			Path: "/mutate-jobset-x-k8s-io-v1alpha2-jobset", Mutating: true,
			Group: group, Version: version, Resource: "jobsets",
			Operations: []admission.OperationType{admission.Create},
		}, {
			Path:  "/validate-jobset-x-k8s-io-v1alpha2-jobset",
			Group: group, Version: version, Resource: "jobsets",
			Operations: []admission.OperationType{admission.Create, admission.Update},
		}},
		Probe:   probe,
		Changed: func(object client.Object) bool { return object.(*jobset.JobSet).Spec.Network != nil },
	}))
}

func setup(ctx context.Context, manager ctrl.Manager) error {
	if err := controllers.SetupJobSetIndexes(ctx, manager.GetFieldIndexer()); err != nil {
		return err
	}
	events := manager.GetEventRecorderFor("jobset")
	if err := controllers.NewJobSetReconciler(manager.GetClient(), manager.GetScheme(), events).SetupWithManager(manager); err != nil {
		return err
	}
	hook, err := webhooks.NewJobSetWebhook(manager.GetClient())
	if err != nil {
		return err
	}
	return hook.SetupWebhookWithManager(manager)
}
