//go:build launcher_only

package main

// programs is empty in a launcher that takes every program from KUBEBUILDER_ASSETS (and --kwok): it builds in seconds.
var programs = map[string]func() int{}

var definitions = map[string]func() []byte{}
