// Command fairlead-test-kubeflow runs the controllers of Kubeflow's training operator (kubeflow.org/v1) for PyTorchJob and TFJob,
// without gang scheduling. The pods come from the operator itself.
//
// Its webhooks only validate, and are left out; the controllers set their defaults themselves. A test has to name the container
// as the kind asks, "pytorch" or "tensorflow": the controllers look for the port in the container of that name, and fail without.
package main

import (
	"context"
	"os"

	"fairlead.dev/tests/workload-controllers/runner"
	kubeflow "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	"github.com/kubeflow/training-operator/pkg/config"
	"github.com/kubeflow/training-operator/pkg/controller.v1/common"
	"github.com/kubeflow/training-operator/pkg/controller.v1/pytorch"
	"github.com/kubeflow/training-operator/pkg/controller.v1/tensorflow"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func main() {
	os.Exit(runner.Main(runner.Program{
		Name:        "fairlead-test-kubeflow",
		AddToScheme: []func(*runtime.Scheme) error{kubeflow.AddToScheme},
		Kinds:       []client.Object{&kubeflow.PyTorchJob{}, &kubeflow.TFJob{}},
		Setup:       setup,
	}))
}

func setup(_ context.Context, manager ctrl.Manager) error {
	// Workers get an init container that waits for the master. Its image and tries come from the operator's flags.
	config.Config.PyTorchInitContainerImage = config.PyTorchInitContainerImageDefault
	config.Config.PyTorchInitContainerTemplateFile = config.PyTorchInitContainerTemplateFileDefault
	config.Config.PyTorchInitContainerMaxTries = config.PyTorchInitContainerMaxTriesDefault

	alone := common.GenNonGangSchedulerSetupFunc()
	if err := pytorch.NewReconciler(manager, alone).SetupWithManager(manager, 1); err != nil {
		return err
	}
	return tensorflow.NewReconciler(manager, alone).SetupWithManager(manager, 1)
}
