// Package launch runs a Kubernetes control plane on 127.0.0.1 as child processes: etcd and kube-apiserver, and if asked for
// kube-controller-manager, kube-scheduler and kwok. It needs no fixed port and leaves no process, port or file behind, whether
// it is interrupted, told to end, killed, or orphaned.
package launch

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// marker is the file by which a folder is known as one of ours. It is locked while a launcher uses the folder.
const marker = ".fairlead-control-plane"

// errStopped ends a run that was asked to end. It is no failure.
var errStopped = errors.New("asked to stop")

// Main runs `up` and returns its exit code.
func Main(args []string, programs Programs) int {
	o, err := parseOptions(args, os.Getenv("KUBEBUILDER_ASSETS"), os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "fairlead-control-plane:", err)
		return 2
	}
	if err := up(o, programs, os.Stdout, os.Stderr); err != nil && !errors.Is(err, errStopped) {
		fmt.Fprintln(os.Stderr, "fairlead-control-plane:", err)
		return 1
	}
	return 0
}

// plane is a control plane that is starting, running or stopping.
type plane struct {
	options  options
	programs Programs
	self     string
	started  time.Time
	notes    io.Writer

	spawner   *spawner
	janitor   *janitor
	port      *port
	identity  *identity
	client    *client
	apiserver *process      // Null while it is stopped.
	processes []*process    // All others.
	ended     chan *process // Programs that ended by themselves.
}

// up runs until it is told to stop (SIGINT, SIGTERM, SIGHUP), its parent ends, or a program dies.
func up(o options, programs Programs, out, notes io.Writer) (err error) {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, unix.SIGUSR1, unix.SIGUSR2)
	defer signal.Stop(signals)

	if err := refuseForeign(o.kubeconfig); err != nil {
		return err
	}
	lock, err := claim(o.dir)
	if err != nil {
		return err
	}
	defer lock.Close()
	p := &plane{options: o, programs: programs, started: time.Now(), notes: notes, spawner: newSpawner(), ended: make(chan *process, 8)}
	if p.self, err = os.Executable(); err != nil {
		return err
	}
	if p.janitor, err = startJanitor(p.self, o.leftovers()); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.shutDown()) }()

	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	p.supervise(ctx, cancel)
	if err := p.start(ctx); err != nil {
		return p.explain(ctx, err)
	}
	p.note("ready: %s", o.kubeconfig)
	fmt.Fprintln(out, "ready")
	return p.serve(ctx, out, signals)
}

// supervise cancels ctx when the run has to end, from the first moment on.
func (p *plane) supervise(ctx context.Context, cancel context.CancelCauseFunc) {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, unix.SIGINT, unix.SIGTERM, unix.SIGHUP)
	var parent <-chan struct{}
	if !p.options.outliveParent {
		parent = parentGone()
	}
	go func() {
		defer signal.Stop(stop)
		select {
		case <-ctx.Done():
		case <-stop:
			cancel(errStopped)
		case <-parent:
			cancel(errStopped)
		case dead := <-p.ended:
			cancel(fmt.Errorf("%s ended by itself (%s); the end of its log:\n%s", dead.name, dead.state, dead.tail(20)))
		}
	}()
}

// explain prefers why the run ended to what was being waited for at that moment.
func (p *plane) explain(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// start brings everything up. The time limit is for this part alone.
func (p *plane) start(ctx context.Context) error {
	limit := fmt.Errorf("not ready within %s; logs are in %s (use --keep to keep them)", p.options.startTimeout, filepath.Join(p.options.dir, "logs"))
	ctx, cancel := context.WithTimeoutCause(ctx, p.options.startTimeout, limit)
	defer cancel()
	var definitions []definition
	for _, folder := range p.options.crdDirs {
		read, err := readDefinitions(folder)
		if err != nil {
			return err
		}
		definitions = append(definitions, read...)
	}
	var err error
	if p.port, err = reservePort(); err != nil {
		return err
	}
	p.identity, err = writeIdentity(filepath.Join(p.options.dir, "keys"), p.options.kubeconfig, p.port.number)
	if err != nil {
		return err
	}
	p.client, err = newClient(p.identity.server, p.identity.tokens[adminUser], p.identity.ca)
	if err != nil {
		return err
	}
	if err := p.run("etcd", etcdArguments()); err != nil {
		return err
	}
	if err := p.startAPIServer(ctx); err != nil {
		return err
	}
	if err := applyDefinitions(ctx, p.client, definitions); err != nil {
		return err
	}
	if len(definitions) > 0 {
		p.note("%d CRDs served", len(definitions))
	}
	if err := p.startOthers(ctx); err != nil {
		return err
	}
	return p.writeReadyFile()
}

func (p *plane) startOthers(ctx context.Context) error {
	if p.options.controllers != "" {
		if err := p.run("kube-controller-manager", p.options.controllerManagerArguments()); err != nil {
			return err
		}
	}
	if p.options.scheduler {
		if err := p.run("kube-scheduler", p.options.schedulerArguments()); err != nil {
			return err
		}
	}
	if p.options.kwok != "" {
		arguments, err := p.options.kwokArguments(p.programs.Stages)
		if err != nil {
			return err
		}
		if err := p.run("kwok", arguments); err != nil {
			return err
		}
	}
	if p.options.runsController("serviceaccount-controller", "serviceaccount") {
		// Until this account is there, no pod can be made.
		if err := p.client.waitFor(ctx, "/api/v1/namespaces/default/serviceaccounts/default", found); err != nil {
			return err
		}
		p.note("default service account made")
	}
	return nil
}

// run starts a program that lives as long as the control plane.
func (p *plane) run(name string, arguments []string) error {
	started, err := p.spawn(name, arguments)
	if err == nil {
		p.processes = append(p.processes, started)
		p.note("%s started", name)
	}
	return err
}

func (p *plane) spawn(name string, arguments []string) (*process, error) {
	argv, err := locate(name, p.options.assets, p.self, p.programs.Builtin)
	if name == "kwok" && p.options.kwok != builtinKwok {
		argv, err = []string{p.options.kwok}, nil
	}
	if err != nil {
		return nil, err
	}
	started, err := startProcess(p.spawner, name, append(argv, arguments...), p.options.dir, p.ended)
	if err != nil {
		return nil, err
	}
	if err := p.janitor.watch(started.pid); err != nil {
		started.stop()
		return nil, err
	}
	return started, nil
}

// startAPIServer starts it on the reserved port and waits until it is ready.
func (p *plane) startAPIServer(ctx context.Context) error {
	started, err := p.spawn("kube-apiserver", p.options.apiserverArguments(p.port.number))
	if err != nil {
		return err
	}
	p.apiserver = started
	if err := p.client.waitFor(ctx, "/readyz", found); err != nil {
		return err
	}
	p.note("kube-apiserver ready on %s", p.identity.server)
	return nil
}

// serve obeys SIGUSR1 (kill kube-apiserver) and SIGUSR2 (start it again, same port, same data) until the run has to end.
func (p *plane) serve(ctx context.Context, out io.Writer, signals <-chan os.Signal) error {
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case received := <-signals:
			switch {
			case received == unix.SIGUSR1 && p.apiserver != nil:
				p.removeReadyFile()
				p.apiserver.stop()
				p.apiserver = nil
				p.note("kube-apiserver stopped")
				fmt.Fprintln(out, "stopped")
			case received == unix.SIGUSR2 && p.apiserver == nil:
				if err := p.restartAPIServer(ctx); err != nil {
					return p.explain(ctx, err)
				}
				fmt.Fprintln(out, "ready")
			}
		}
	}
}

func (p *plane) restartAPIServer(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, p.options.startTimeout)
	defer cancel()
	if err := p.startAPIServer(ctx); err != nil {
		return err
	}
	return p.writeReadyFile()
}

// shutDown kills the programs, the latest first, and has the files removed.
func (p *plane) shutDown() error {
	p.removeReadyFile()
	if p.apiserver != nil {
		p.processes = append(p.processes, p.apiserver)
	}
	for i := len(p.processes) - 1; i >= 0; i-- {
		p.processes[i].stop()
	}
	if p.port != nil {
		p.port.release()
	}
	err := p.janitor.finish()
	if err == nil {
		return nil
	}
	for _, path := range p.options.leftovers() { // The janitor was killed.
		err = errors.Join(err, os.RemoveAll(path))
	}
	return err
}

func (p *plane) writeReadyFile() error {
	if p.options.readyFile == "" {
		return nil
	}
	return writeFile(p.options.readyFile, []byte(p.options.kubeconfig+"\n"))
}

func (p *plane) removeReadyFile() {
	if p.options.readyFile != "" {
		os.Remove(p.options.readyFile)
	}
}

func (p *plane) note(format string, arguments ...any) {
	fmt.Fprintf(p.notes, "%6.2fs  %s\n", time.Since(p.started).Seconds(), fmt.Sprintf(format, arguments...))
}

// leftovers are the files to remove when it is over.
func (o *options) leftovers() []string {
	var paths []string
	if o.readyFile != "" {
		paths = append(paths, o.readyFile)
	}
	if !o.keep {
		paths = append(paths, o.kubeconfig, o.dir)
	}
	return paths
}

// claim takes a folder for this launcher alone. Because the folder is removed at the end, it must be new, empty or ours.
func claim(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, marker)
	if _, err := os.Stat(path); len(entries) > 0 && errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s is not empty and not a folder of this program", dir)
	}
	lock, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		lock.Close()
		return nil, fmt.Errorf("%s is in use by another control plane: %w", dir, err)
	}
	return lock, nil
}
