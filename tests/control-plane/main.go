// Command fairlead-control-plane is a Kubernetes control plane in one multi-call binary, for tests and the local run:
// etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kwok and Karpenter, built from the upstream Go modules, and
// a launcher (`up`) that runs all but Karpenter together on 127.0.0.1 and leaves nothing behind. `scheduler-oracle` is no
// server: it answers what kube-scheduler's plugins say of a cluster (package oracle). `crds` prints the
// CustomResourceDefinitions of a program, for the flag --crds of `up`.
//
// The first argument picks the program; the rest are that program's own flags.
package main

import (
	"embed"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"fairlead.dev/tests/control-plane/launch"
)

//go:embed kwok/*.yaml
var stages embed.FS

func main() {
	if len(os.Args) < 2 {
		usage()
		os.Exit(2)
	}
	name, args := os.Args[1], os.Args[2:]
	switch name {
	case "up":
		os.Exit(launch.Main(args, launch.Programs{Builtin: names(), Stages: kwokStages()}))
	case "crds":
		os.Exit(printDefinitions(args))
	case launch.JanitorCommand:
		os.Exit(launch.JanitorMain(args))
	}
	if run, ok := programs[name]; ok {
		os.Args = append([]string{name}, args...)
		os.Exit(run())
	}
	usage()
	os.Exit(2)
}

// printDefinitions prints the CustomResourceDefinitions of the program that the arguments name, and returns the exit code.
func printDefinitions(args []string) int {
	if len(args) == 1 {
		if read, ok := definitions[args[0]]; ok {
			if _, err := os.Stdout.Write(read()); err != nil {
				fmt.Fprintln(os.Stderr, "fairlead-control-plane:", err)
				return 1
			}
			return 0
		}
	}
	fmt.Fprintf(os.Stderr, "usage: fairlead-control-plane crds PROGRAM; programs with CRDs in this binary: %q\n",
		slices.Sorted(maps.Keys(definitions)))
	return 2
}

// names lists the programs linked into this binary, in a stable order.
func names() []string {
	var list []string
	for name := range programs {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

func kwokStages() fs.FS {
	sub, err := fs.Sub(stages, "kwok")
	if err != nil {
		panic(err) // The folder is embedded above; only a changed name can get here.
	}
	return sub
}

func usage() {
	fmt.Fprintf(os.Stderr, "usage: fairlead-control-plane %s [flags]\n", strings.Join(append([]string{"up", "crds"}, names()...), "|"))
}
