// fairlead-install-tools has what users install with, for the tests: helm and kubectl (with kustomize) in one program.
//
//	fairlead-install-tools helm|kubectl ARGUMENT...
package main

import (
	"fmt"
	"os"

	helm "helm.sh/helm/v4/pkg/cmd"
	kubectl "k8s.io/kubectl/pkg/cmd"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: fairlead-install-tools helm|kubectl ARGUMENT...")
		os.Exit(2)
	}
	name := os.Args[1]
	os.Args = append([]string{name}, os.Args[2:]...)
	var err error
	switch name {
	case "helm":
		command, failed := helm.NewRootCmd(os.Stdout, os.Args[1:], helm.SetupLogging)
		if err = failed; err == nil {
			err = command.Execute()
		}
	case "kubectl":
		err = kubectl.NewDefaultKubectlCommand().Execute()
	default:
		err = fmt.Errorf("no such program: %s", name)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}
