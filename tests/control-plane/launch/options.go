package launch

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// defaultControllers are those that a day of jobs, deployments and budgets needs. The rest would only cost start time.
const defaultControllers = "deployment-controller,replicaset-controller,job-controller,cronjob-controller," +
	"serviceaccount-controller,serviceaccount-token-controller,namespace-controller,garbage-collector-controller," +
	"pod-garbage-collector-controller,disruption-controller"

// builtinKwok is the value of --kwok that means the kwok inside this binary.
const builtinKwok = "builtin"

// options are the flags of `up`, checked and completed. Paths are absolute.
type options struct {
	dir                    string
	kubeconfig             string
	readyFile              string
	controllers            string // Empty: no controller manager.
	scheduler              bool
	kwok                   string // Empty: no kwok; builtinKwok; or the path of a kwok binary.
	kwokStages             string // Empty: the stages that are embedded in the binary.
	crdDirs                []string
	apiserverFlags         []string
	controllerManagerFlags []string
	schedulerFlags         []string
	assets                 string // KUBEBUILDER_ASSETS
	keep                   bool
	outliveParent          bool
	startTimeout           time.Duration
}

// list is a flag that may be given more than once.
type list []string

func (l *list) String() string { return strings.Join(*l, " ") }

func (l *list) Set(value string) error {
	*l = append(*l, value)
	return nil
}

// parseOptions reads the flags of `up`. A missing --dir is made here, so that the caller always owns a folder's name.
func parseOptions(args []string, assets string, errors io.Writer) (options, error) {
	o := options{assets: assets}
	var controllerManager bool
	set := flag.NewFlagSet("up", flag.ContinueOnError)
	set.SetOutput(errors)
	set.StringVar(&o.dir, "dir", "", "folder of this control plane: data, keys, logs; removed at the end (default: a new one under $TMPDIR)")
	set.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig file to write, for a user of group system:masters (default DIR/kubeconfig)")
	set.StringVar(&o.readyFile, "ready-file", "", "file that exists exactly while the API server answers and the CRDs are in place")
	set.BoolVar(&controllerManager, "controller-manager", false, "run kube-controller-manager with the controllers "+defaultControllers)
	set.StringVar(&o.controllers, "controllers", "", "run kube-controller-manager with these controllers, separated by commas")
	set.BoolVar(&o.scheduler, "kube-scheduler", false, "run kube-scheduler")
	set.StringVar(&o.kwok, "kwok", "", "run kwok for the nodes with the annotation kwok.x-k8s.io/node=fake: \""+builtinKwok+"\" or the path of a binary")
	set.StringVar(&o.kwokStages, "kwok-stages", "", "folder of kwok configuration to use instead of the built-in stages")
	set.Var((*list)(&o.crdDirs), "crds", "folder of CustomResourceDefinition files to apply (may be repeated)")
	set.Var((*list)(&o.apiserverFlags), "apiserver-flag", "one more flag for kube-apiserver (may be repeated)")
	set.Var((*list)(&o.controllerManagerFlags), "controller-manager-flag", "one more flag for kube-controller-manager (may be repeated)")
	set.Var((*list)(&o.schedulerFlags), "scheduler-flag", "one more flag for kube-scheduler (may be repeated)")
	set.BoolVar(&o.keep, "keep", false, "leave DIR and the kubeconfig behind; a later run on the same DIR finds its objects again")
	set.BoolVar(&o.outliveParent, "outlive-parent", false, "go on when the process that started this one ends")
	set.DurationVar(&o.startTimeout, "start-timeout", 2*time.Minute, "give up when it is not ready by then")
	if err := set.Parse(args); err != nil {
		return options{}, err
	}
	if set.NArg() > 0 {
		return options{}, fmt.Errorf("up: unexpected argument %q", set.Arg(0))
	}
	if controllerManager && o.controllers == "" {
		o.controllers = defaultControllers
	}
	return o, o.complete()
}

// complete fills the defaults that depend on other flags and makes every path absolute: the programs run in DIR.
func (o *options) complete() error {
	if o.dir == "" {
		dir, err := os.MkdirTemp("", "fairlead-control-plane-")
		if err != nil {
			return err
		}
		o.dir = dir
	}
	if o.kubeconfig == "" {
		o.kubeconfig = filepath.Join(o.dir, "kubeconfig")
	}
	paths := []*string{&o.dir, &o.kubeconfig, &o.readyFile, &o.kwokStages, &o.assets}
	if o.kwok != builtinKwok {
		paths = append(paths, &o.kwok)
	}
	for i := range o.crdDirs {
		paths = append(paths, &o.crdDirs[i])
	}
	for _, path := range paths {
		if *path == "" {
			continue
		}
		absolute, err := filepath.Abs(*path)
		if err != nil {
			return err
		}
		*path = absolute
	}
	return nil
}

// runsController says whether the controller manager is to run the controller of this name; short is its old name, which
// kube-controller-manager accepts too.
func (o *options) runsController(name, short string) bool {
	selected := strings.Split(o.controllers, ",")
	if slices.Contains(selected, "-"+name) || slices.Contains(selected, "-"+short) {
		return false
	}
	return slices.Contains(selected, name) || slices.Contains(selected, short) || slices.Contains(selected, "*")
}

// disabledAdmission lists the admission plugins that would block every pod or node because the controller they rely on does
// not run: ServiceAccount needs the "default" account of each namespace, TaintNodesByCondition needs a controller that takes
// off the not-ready taint that it puts on each new node.
func (o *options) disabledAdmission() []string {
	var plugins []string
	if !o.runsController("serviceaccount-controller", "serviceaccount") {
		plugins = append(plugins, "ServiceAccount")
	}
	if !o.runsController("node-lifecycle-controller", "nodelifecycle") {
		plugins = append(plugins, "TaintNodesByCondition")
	}
	return plugins
}
