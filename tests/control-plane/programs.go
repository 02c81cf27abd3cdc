//go:build !launcher_only

package main

import (
	"os"

	fairlead "fairlead.dev/kube-scheduler-plugin"
	"fairlead.dev/tests/control-plane/karpenter"
	"fairlead.dev/tests/control-plane/oracle"
	"github.com/spf13/pflag"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kwokconfig "sigs.k8s.io/kwok/pkg/config"
	kwokcmd "sigs.k8s.io/kwok/pkg/kwok/cmd"
	kwoklog "sigs.k8s.io/kwok/pkg/log"
	kwoksignals "sigs.k8s.io/kwok/pkg/utils/signals"
)

// programs maps a program's name to its entry point. Each reads os.Args, as it would on its own, and returns its exit code.
var programs = map[string]func() int{
	"etcd":                    func() int { etcdmain.Main(os.Args); return 0 },
	"kube-apiserver":          func() int { return cli.Run(apiserver.NewAPIServerCommand()) },
	"kube-controller-manager": func() int { return cli.Run(controllermanager.NewControllerManagerCommand()) },
	"kube-scheduler": func() int {
		return cli.Run(scheduler.NewSchedulerCommand(scheduler.WithPlugin(fairlead.Name, fairlead.New)))
	},
	"kwok":             runKwok,
	"karpenter":        karpenter.Main,
	"scheduler-oracle": oracle.Main,
}

// definitions maps a program's name to the CustomResourceDefinitions that it works with, as YAML documents.
var definitions = map[string]func() []byte{"karpenter": karpenter.CRDs}

// runKwok is what kwok's own main does: its global flags (--config, --v) are read before the command is made, because the
// configuration they name gives the other flags their defaults.
func runKwok() int {
	// cobra adds the flags of this global set to every command, and the other programs linked here have put theirs into it.
	pflag.CommandLine = pflag.NewFlagSet("kwok", pflag.ContinueOnError)
	global := pflag.NewFlagSet("global", pflag.ContinueOnError)
	global.ParseErrorsAllowlist.UnknownFlags = true
	global.Usage = func() {}
	ctx, logger := kwoklog.InitFlags(kwoksignals.SetupSignalContext(), global)
	ctx, err := kwokconfig.InitFlags(ctx, global)
	if err != nil {
		logger.Error("reading kwok's configuration", "err", err)
		return 1
	}
	command := kwokcmd.NewCommand(ctx)
	command.PersistentFlags().AddFlagSet(global)
	if err := command.ExecuteContext(ctx); err != nil {
		logger.Error("kwok", "err", err)
		return 1
	}
	return 0
}
