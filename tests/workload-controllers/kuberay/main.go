// Command fairlead-test-kuberay runs KubeRay's controllers for RayCluster and RayJob, with the feature gates of the release, no
// webhooks and no batch scheduler. The pods come from KubeRay itself. Once the pods of a RayJob's cluster are ready, it also makes
// a batch Job that submits the Ray job; its pod comes from kube-controller-manager's job-controller.
//
// A test that sets spec.suspend of a RayJob, at any time, has to set spec.shutdownAfterJobFinishes: true too. Else KubeRay sets
// status.jobDeploymentStatus to ValidationFailed for good, and leaves the pods.
package main

import (
	"context"
	"os"

	"fairlead.dev/tests/workload-controllers/runner"
	config "github.com/ray-project/kuberay/ray-operator/apis/config/v1alpha1"
	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	"github.com/ray-project/kuberay/ray-operator/controllers/ray"
	"github.com/ray-project/kuberay/ray-operator/controllers/ray/utils/dashboardclient"
	"github.com/ray-project/kuberay/ray-operator/controllers/ray/utils/types"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func main() {
	os.Exit(runner.Main(runner.Program{
		Name:        "fairlead-test-kuberay",
		AddToScheme: []func(*runtime.Scheme) error{rayv1.AddToScheme},
		Kinds:       []client.Object{&rayv1.RayCluster{}, &rayv1.RayJob{}},
		Setup:       setup,
	}))
}

func setup(ctx context.Context, manager ctrl.Manager) error {
	const workers = config.DefaultReconcileConcurrency
	clusters := ray.NewReconciler(ctx, manager, ray.RayClusterReconcilerOptions{})
	if err := clusters.SetupWithManager(manager, workers); err != nil {
		return err
	}
	return ray.NewRayJobReconciler(ctx, manager, ray.RayJobReconcilerOptions{}, provider{}).SetupWithManager(manager, workers)
}

// provider replaces what KubeRay asks over the network. No pod of a test runs Ray, so KubeRay would ask the resolver of this
// machine for the name of a service, again and again, and its only worker would wait for each answer.
type provider struct{ config.Configuration }

func (provider) GetDashboardClient(context.Context, ctrl.Manager) func(*rayv1.RayCluster, string) (dashboardclient.RayDashboardClientInterface, error) {
	return func(*rayv1.RayCluster, string) (dashboardclient.RayDashboardClientInterface, error) {
		return dashboard{}, nil
	}
}

// dashboard has the two calls that the reconciler makes. Its jobs run until they are stopped.
type dashboard struct {
	dashboardclient.RayDashboardClientInterface
}

func (dashboard) GetJobInfo(_ context.Context, job string) (*types.RayJobInfo, error) {
	return &types.RayJobInfo{JobId: job, SubmissionId: job, JobStatus: rayv1.JobStatusRunning}, nil
}

func (dashboard) StopJob(context.Context, string) error { return nil }
