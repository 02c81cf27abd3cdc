// Package karpenter runs Karpenter with its kwok cloud provider, which makes Node objects instead of renting machines. Each
// such node carries the annotation kwok.x-k8s.io/node=fake, by which the control plane's kwok plays the node's kubelet.
package karpenter

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	kwokapis "sigs.k8s.io/karpenter/kwok/apis"
	kwok "sigs.k8s.io/karpenter/kwok/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/apis"
	"sigs.k8s.io/karpenter/pkg/cloudprovider/overlay"
	"sigs.k8s.io/karpenter/pkg/controllers"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/operator"
	"sigs.k8s.io/karpenter/pkg/operator/injection"
	"sigs.k8s.io/karpenter/pkg/operator/options"
)

// defaults are environment variables of Karpenter, which its flags override. A test runs one Karpenter, so there is no leader
// to elect. The kernel chooses both ports, because several tests share a machine.
var defaults = map[string]string{
	"DISABLE_LEADER_ELECTION": "true",
	"METRICS_PORT":            "0",
	"HEALTH_PROBE_PORT":       "0",
}

// Main applies the CRDs and runs Karpenter until a signal ends the process. It returns an exit code only if Karpenter cannot
// start.
func Main() int {
	for name, value := range defaults {
		if _, set := os.LookupEnv(name); !set {
			os.Setenv(name, value)
		}
	}
	server := &kubeconfig{}
	options.Injectables = append(options.Injectables, server)
	// NewOperator parses the flags too, but it already looks up the kinds that the CRDs define.
	injection.WithOptionsOrDie(context.Background(), options.Injectables...)
	if server.path == "" {
		fmt.Fprintln(os.Stderr, "karpenter: no API server is named; use --kubeconfig")
		return 2
	}
	if err := applyCRDs(); err != nil {
		fmt.Fprintln(os.Stderr, "karpenter: applying the CRDs:", err)
		return 1
	}

	ctx, op := operator.NewOperator()
	types, err := kwok.ConstructInstanceTypes(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "karpenter: reading the instance types:", err)
		return 1
	}
	provider, err := withStock(kwok.NewCloudProvider(ctx, op.GetClient(), types))
	if err != nil {
		fmt.Fprintln(os.Stderr, "karpenter:", err)
		return 2
	}
	decorated := overlay.Decorate(provider, op.GetClient(), op.InstanceTypeStore)
	cluster := state.NewCluster(op.Clock, op.GetClient(), decorated)
	op.WithControllers(ctx, controllers.NewControllers(ctx, op.Manager, op.Clock, op.GetClient(), op.EventRecorder, decorated,
		provider, cluster, op.InstanceTypeStore)...)
	op.Start(ctx)
	return 0
}

// CRDs returns the CustomResourceDefinitions of Karpenter and of its kwok cloud provider as YAML documents.
func CRDs() []byte {
	return bytes.Join([][]byte{
		apis.NodePoolCRD, apis.NodeClaimCRD, apis.NodeOverlayCRD, apis.CapacityBufferCRD, kwokapis.KWOKNodeClassCRD,
	}, []byte("\n"))
}

// applyCRDs creates or updates the CRDs and waits until the API server serves them.
func applyCRDs() error {
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	definitions := append([]*apiextensions.CustomResourceDefinition{}, apis.CRDs...)
	definitions = append(definitions, kwokapis.CRDs...)
	_, err = envtest.InstallCRDs(config, envtest.CRDInstallOptions{CRDs: definitions})
	return err
}

// kubeconfig is the flag --kubeconfig, which Karpenter's own set of flags lacks. The flag is required: without it, Karpenter
// would take the user's own cluster.
type kubeconfig struct{ path string }

func (k *kubeconfig) AddFlags(set *options.FlagSet) {
	set.StringVar(&k.path, "kubeconfig", "", "kubeconfig file of the API server (required)")
}

// Parse hands the file to controller-runtime, which has a flag of the same name in the global set.
func (k *kubeconfig) Parse(set *options.FlagSet, arguments ...string) error {
	if err := set.Parse(arguments); err != nil {
		return err
	}
	return flag.Set("kubeconfig", k.path)
}

func (k *kubeconfig) ToContext(ctx context.Context) context.Context { return ctx }
