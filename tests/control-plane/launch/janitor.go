package launch

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// JanitorCommand is the hidden subcommand that cleans up after a launcher, however the launcher ended.
const JanitorCommand = "janitor"

// killWait is how long a killed program may take to vanish (it may be in the kernel, in a write to disk).
const killWait = 10 * time.Second

// janitor is a process of its own session that holds one end of a pipe. The other end closes when the launcher ends, kill -9
// included; then it kills what is left of the programs and removes the files. An orderly stop takes the same way, so that the
// way is well trodden.
type janitor struct {
	command *exec.Cmd
	pipe    io.WriteCloser
}

// startJanitor starts one that will remove the given paths at the end.
func startJanitor(self string, remove []string) (*janitor, error) {
	command := exec.Command(self, append([]string{JanitorCommand}, remove...)...)
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // A signal to the launcher's group or terminal is not for it.
	command.Env = []string{}
	command.Dir = "/"
	pipe, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("starting the janitor: %w", err)
	}
	return &janitor{command: command, pipe: pipe}, nil
}

// watch tells the janitor of a program, the leader of its own process group.
func (j *janitor) watch(pid int) error {
	_, err := fmt.Fprintf(j.pipe, "%d\n", pid)
	return err
}

// finish lets it do its work and waits for the end of it.
func (j *janitor) finish() error {
	j.pipe.Close()
	return j.command.Wait()
}

// JanitorMain is the janitor's process: process ids on standard input, one a line; paths to remove as arguments.
func JanitorMain(remove []string) int {
	signal.Ignore(unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT)
	watched := readWatched(os.Stdin)
	code := 0
	for _, program := range watched {
		if !program.kill() {
			code = 1
		}
	}
	for _, path := range remove {
		if err := os.RemoveAll(path); err != nil {
			fmt.Fprintln(os.Stderr, "janitor:", err)
			code = 1
		}
	}
	return code
}

// watchedProgram is held by descriptor, because a process id may belong to another process by the time it is needed.
type watchedProgram struct{ pid, descriptor int }

// readWatched collects what the launcher names, until the launcher is gone.
func readWatched(in io.Reader) []watchedProgram {
	var programs []watchedProgram
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		pid, err := strconv.Atoi(strings.TrimSpace(lines.Text()))
		if err != nil || pid <= 1 {
			continue
		}
		if descriptor, err := unix.PidfdOpen(pid, 0); err == nil {
			programs = append(programs, watchedProgram{pid: pid, descriptor: descriptor})
		}
	}
	return programs
}

// kill ends the program and its process group if it still runs, and says whether it is gone.
func (w watchedProgram) kill() bool {
	defer unix.Close(w.descriptor)
	if waitGone(w.descriptor, 0) {
		return true
	}
	unix.Kill(-w.pid, unix.SIGKILL)
	return waitGone(w.descriptor, killWait)
}

// waitGone waits until the process of a pidfd has ended; a negative timeout is none.
func waitGone(descriptor int, timeout time.Duration) bool {
	for {
		polled := []unix.PollFd{{Fd: int32(descriptor), Events: unix.POLLIN}}
		n, err := unix.Poll(polled, int(timeout.Milliseconds()))
		if err == unix.EINTR {
			continue
		}
		return err == nil && n == 1
	}
}
