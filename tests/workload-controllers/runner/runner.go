// Package runner is what the programs of this folder share. Each program runs the controllers of one other project, from that
// project's Go module, against the API server of a kubeconfig, for the integration tests.
package runner

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metrics "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// Program is one project's controllers.
type Program struct {
	// Name names the program in its messages, and its webhook configurations in the API server.
	Name string
	// AddToScheme adds the project's kinds. Those of Kubernetes itself are always there.
	AddToScheme []func(*runtime.Scheme) error
	// Kinds are those of the project that the reconcilers watch. Their CRDs have to be in the API server.
	Kinds []client.Object
	// Client is how the manager's client reads.
	Client client.Options
	// Setup makes the reconcilers, and registers the handlers of Webhooks.
	Setup func(context.Context, ctrl.Manager) error
	// Webhooks are what the API server is told to call. Most controllers work without.
	Webhooks []Webhook
	// Probe is an object that the webhooks change. It is only created as a dry run, until Changed says that it came back changed:
	// the API server takes a moment to notice a new webhook.
	Probe   client.Object
	Changed func(client.Object) bool
}

// patience is how long the program waits for one thing that ought to happen at once.
const patience = 30 * time.Second

// Main runs the program until a signal ends it, and returns its exit code. It prints the line "ready" once the controllers work.
// Everything else goes to stderr.
func Main(program Program) int {
	flags := flag.NewFlagSet(program.Name, flag.ContinueOnError)
	// The global set has a flag of this name too, by controller-runtime, which takes the user's own cluster if it is not given.
	path := flags.String("kubeconfig", "", "kubeconfig file of the API server (required)")
	if err := flags.Parse(os.Args[1:]); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return 2
	}
	if *path == "" || flags.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "usage: %s --kubeconfig FILE\n", program.Name)
		return 2
	}
	// A library that looks for a cluster by itself finds this one.
	os.Setenv("KUBECONFIG", *path)

	// A console's lines are easier to read in the log of a failed test than JSON.
	logger := zap.New(zap.WriteTo(os.Stderr), zap.ConsoleEncoder())
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)

	signals, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(signals, program, *path); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", program.Name, err)
		// The API server may be gone first, so what goes wrong after the signal is no failure.
		if signals.Err() == nil {
			return 1
		}
	}
	return 0
}

// run returns after the signal, or when the manager fails.
func run(signals context.Context, program Program, kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	// Tests wait for every step, and nobody else is slowed down.
	config.QPS, config.Burst = 500, 1000

	kinds := runtime.NewScheme()
	for _, add := range append([]func(*runtime.Scheme) error{scheme.AddToScheme}, program.AddToScheme...) {
		if err := add(kinds); err != nil {
			return err
		}
	}
	hooks, err := listen()
	if err != nil {
		return err
	}
	defer hooks.listener.Close()
	shutdown := 5 * time.Second
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                  kinds,
		Client:                  program.Client,
		Metrics:                 metrics.Options{BindAddress: "0"},
		WebhookServer:           hooks,
		GracefulShutdownTimeout: &shutdown,
	})
	if err != nil {
		return err
	}

	if err := served(signals, program, config, kinds); err != nil {
		return err
	}

	// The manager must outlive the signal: as long as the webhooks are configured, their server has to answer.
	running, end := context.WithCancel(context.Background())
	defer end()
	if err := program.Setup(running, manager); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(running) }()

	began := make(chan error, 1)
	go func() { began <- begin(signals, program, config, manager, hooks) }()
	select {
	case err = <-began:
	case err = <-ended:
		if err == nil {
			err = errors.New("the manager ended by itself")
		}
		return errors.Join(err, unconfigure(config, program))
	}
	if err == nil {
		fmt.Println("ready")
		select {
		case <-signals.Done():
		case err = <-ended:
			return errors.Join(err, unconfigure(config, program))
		}
	}
	err = errors.Join(err, unconfigure(config, program))
	end()
	return errors.Join(err, <-ended)
}

// served returns when the API server serves the project's kinds. A new CRD takes a moment, and a controller that finds its kind
// missing tries again only 10 seconds later.
func served(ctx context.Context, program Program, config *rest.Config, kinds *runtime.Scheme) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	api, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	for _, kind := range program.Kinds {
		gvk, err := apiutil.GVKForObject(kind, kinds)
		if err != nil {
			return err
		}
		for {
			resources, err := api.ServerResourcesForGroupVersion(gvk.GroupVersion().String())
			if err == nil && slices.ContainsFunc(resources.APIResources, func(r meta.APIResource) bool { return r.Kind == gvk.Kind }) {
				break
			}
			select {
			case <-ctx.Done():
				return errors.Join(fmt.Errorf("%s is not served: apply its CRD", gvk), err)
			case <-time.After(50 * time.Millisecond):
			}
		}
	}
	return nil
}

// begin returns when the controllers work and the API server calls the webhooks.
func begin(ctx context.Context, program Program, config *rest.Config, manager ctrl.Manager, hooks *hookServer) error {
	select {
	case <-manager.Elected(): // No election takes place: it says that all parts were started.
	case <-ctx.Done():
		return ctx.Err()
	}
	// The controllers register their informers while they start, so these may be missing yet.
	for _, kind := range program.Kinds {
		if _, err := manager.GetCache().GetInformer(ctx, kind); err != nil {
			return err
		}
	}
	if !manager.GetCache().WaitForCacheSync(ctx) {
		return errors.New("the caches do not fill")
	}
	if len(program.Webhooks) == 0 {
		return nil
	}
	if err := configure(ctx, config, program, hooks); err != nil {
		return err
	}
	return probe(ctx, program, manager.GetClient())
}
