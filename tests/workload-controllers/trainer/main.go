// Command fairlead-test-trainer runs the controllers of Kubeflow Trainer (trainer.kubeflow.org), without gang scheduling. A
// TrainJob becomes a JobSet, so fairlead-test-jobset has to run beside it, and kube-controller-manager's job-controller.
//
// Its webhooks only validate, and are left out. A test makes the runtime that spec.runtimeRef names: its replicated job needs
// the label trainer.kubeflow.org/trainjob-ancestor-step: trainer in template.metadata, and a container named "node".
package main

import (
	"context"
	"fmt"
	"os"

	"fairlead.dev/tests/workload-controllers/runner"
	trainer "github.com/kubeflow/trainer/v2/pkg/apis/trainer/v1alpha1"
	"github.com/kubeflow/trainer/v2/pkg/controller"
	"github.com/kubeflow/trainer/v2/pkg/runtime/core"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlcontroller "sigs.k8s.io/controller-runtime/pkg/controller"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
)

func main() {
	os.Exit(runner.Main(runner.Program{
		Name:        "fairlead-test-trainer",
		AddToScheme: []func(*runtime.Scheme) error{trainer.AddToScheme, jobset.AddToScheme},
		Kinds: []client.Object{
			&trainer.TrainJob{}, &trainer.TrainingRuntime{}, &trainer.ClusterTrainingRuntime{}, &jobset.JobSet{},
		},
		Client: client.Options{Cache: &client.CacheOptions{Unstructured: true}}, // As Trainer itself does.
		Setup:  setup,
	}))
}

func setup(ctx context.Context, manager ctrl.Manager) error {
	runtimes, err := core.New(ctx, manager.GetClient(), manager.GetFieldIndexer())
	if err != nil {
		return err
	}
	if name, err := controller.SetupControllers(manager, runtimes, ctrlcontroller.Options{}); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
