package launch

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Programs says what this binary can be besides the launcher.
type Programs struct {
	Builtin []string // Names that are subcommands of this binary.
	Stages  fs.FS    // kwok's stages.
}

// spawner starts processes from one thread that lives as long as the launcher: the kernel's parent-death signal follows the
// thread that forked, not the process.
type spawner struct{ requests chan func() }

func newSpawner() *spawner {
	s := &spawner{requests: make(chan func())}
	go func() {
		runtime.LockOSThread()
		for request := range s.requests {
			request()
		}
	}()
	return s
}

func (s *spawner) start(command *exec.Cmd) error {
	result := make(chan error)
	s.requests <- func() { result <- command.Start() }
	return <-result
}

// process is one running program of the control plane, in a process group of its own. It dies with the launcher.
type process struct {
	name    string
	log     string // Its standard output and error.
	pid     int
	stopped atomic.Bool   // Set before it is killed on purpose.
	done    chan struct{} // Closed when it has ended; state is valid from then on.
	state   *os.ProcessState
}

// startProcess runs argv in dir and reports its end on ended unless it is stopped by stop().
func startProcess(s *spawner, name string, argv []string, dir string, ended chan<- *process) (*process, error) {
	p := &process{name: name, log: filepath.Join(dir, "logs", name+".log"), done: make(chan struct{})}
	if err := os.MkdirAll(filepath.Dir(p.log), 0o700); err != nil {
		return nil, err
	}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	command := exec.Command(argv[0], argv[1:]...)
	command.Dir = dir
	// Nothing of the user's own: no KUBECONFIG, no proxy, no ~/.kwok.
	command.Env = []string{"HOME=" + dir, "TMPDIR=" + dir, "PATH=" + os.Getenv("PATH")}
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := s.start(command); err != nil {
		return nil, fmt.Errorf("starting %s (%s): %w", name, argv[0], err)
	}
	p.pid = command.Process.Pid
	go func() {
		_ = command.Wait() // The state says the same and more.
		p.state = command.ProcessState
		close(p.done)
		if !p.stopped.Load() {
			ended <- p
		}
	}()
	return p, nil
}

// stop kills the process group and waits. Killed, not asked: the data is thrown away, or is safe in the kernel's page cache.
func (p *process) stop() {
	p.stopped.Store(true)
	unix.Kill(-p.pid, unix.SIGKILL)
	<-p.done
}

// tail is the end of the program's log, for an error message.
func (p *process) tail(lines int) string {
	content, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(content), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// parentGone returns a channel that closes when the process that started this one ends; it never does for a child of init.
func parentGone() <-chan struct{} {
	gone := make(chan struct{})
	parent := os.Getppid()
	if parent <= 1 {
		return gone
	}
	descriptor, err := unix.PidfdOpen(parent, 0)
	go func() {
		if err == nil && os.Getppid() == parent {
			waitGone(descriptor, -time.Millisecond)
		}
		for os.Getppid() == parent { // Only where the kernel or a sandbox has no pidfd.
			time.Sleep(pollInterval)
		}
		close(gone)
	}()
	return gone
}
