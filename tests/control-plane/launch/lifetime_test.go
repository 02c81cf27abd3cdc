package launch

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// These tests run the launcher as a process of its own, with a fake etcd and kube-apiserver: this test binary under their
// names in KUBEBUILDER_ASSETS.

func TestMain(m *testing.M) {
	switch filepath.Base(os.Args[0]) {
	case "etcd":
		select {}
	case "kube-apiserver":
		fmt.Fprintln(os.Stderr, fakeAPIServer(os.Args[1:]))
		os.Exit(1)
	case "launcher":
		if os.Args[1] == JanitorCommand {
			os.Exit(JanitorMain(os.Args[2:]))
		}
		os.Exit(Main(os.Args[1:], Programs{}))
	}
	flag.Parse()
	os.Exit(m.Run())
}

// fakeAPIServer says yes to everything, on the port and with the key that it was told to use.
func fakeAPIServer(arguments []string) error {
	values := map[string]string{}
	for _, argument := range arguments {
		name, value, _ := strings.Cut(argument, "=")
		values[name] = value
	}
	listener, err := listenShared("127.0.0.1:" + values["--secure-port"])
	if err != nil {
		return err
	}
	yes := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("ok")) })
	return http.ServeTLS(listener, yes, values["--tls-cert-file"], values["--tls-private-key-file"])
}

// running is a started launcher and what it must take with it when it goes.
type running struct {
	command    *exec.Cmd
	pid        int // Of the launcher, which need not be command itself.
	dir        string
	kubeconfig string
	readyFile  string
	port       int
	children   map[string]int // Process ids by program.
	output     *bytes.Buffer
}

const patience = 20 * time.Second

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", patience, what)
		}
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// startLauncher starts one and waits until it is ready; wrap makes the command from the launcher's own.
func startLauncher(t *testing.T, wrap func(argv []string) []string, flags ...string) *running {
	t.Helper()
	root := t.TempDir()
	binary, err := os.Executable()
	must(t, err)
	must(t, os.Mkdir(filepath.Join(root, "bin"), 0o700))
	for _, name := range []string{"etcd", "kube-apiserver", "launcher"} {
		content, err := os.ReadFile(binary)
		must(t, err)
		must(t, os.WriteFile(filepath.Join(root, "bin", name), content, 0o700))
	}
	r := &running{dir: filepath.Join(root, "plane"), kubeconfig: filepath.Join(root, "kubeconfig"), readyFile: filepath.Join(root, "ready"), children: map[string]int{}, output: &bytes.Buffer{}}
	argv := append([]string{filepath.Join(root, "bin", "launcher"), "--dir", r.dir, "--kubeconfig", r.kubeconfig, "--ready-file", r.readyFile}, flags...)
	argv = wrap(argv)
	r.command = exec.Command(argv[0], argv[1:]...)
	r.command.Env = append(os.Environ(), "KUBEBUILDER_ASSETS="+filepath.Join(root, "bin"))
	r.command.Stderr = r.output
	r.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	must(t, r.command.Start())
	t.Cleanup(func() { unix.Kill(-r.command.Process.Pid, unix.SIGKILL); r.command.Wait() })
	eventually(t, "ready", func() bool { return exists(r.readyFile) })
	r.find(t, filepath.Join(root, "bin"))
	return r
}

// find reads the port from the kubeconfig and the process ids from /proc.
func (r *running) find(t *testing.T, bin string) {
	t.Helper()
	content, err := os.ReadFile(r.kubeconfig)
	must(t, err)
	_, after, _ := strings.Cut(string(content), "https://127.0.0.1:")
	number, _, _ := strings.Cut(after, "\n")
	r.port, err = strconv.Atoi(number)
	must(t, err)
	links, err := filepath.Glob("/proc/[0-9]*/exe")
	must(t, err)
	for _, link := range links {
		target, err := os.Readlink(link)
		if err != nil || !strings.HasPrefix(target, bin) {
			continue
		}
		pid, err := strconv.Atoi(strings.Split(link, "/")[2])
		must(t, err)
		commandLine, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
		if filepath.Base(target) == "launcher" && !bytes.Contains(commandLine, []byte("\x00"+JanitorCommand+"\x00")) {
			r.pid = pid
			continue
		}
		name := filepath.Base(target)
		if name == "launcher" {
			name = JanitorCommand
		}
		r.children[name] = pid
	}
	if r.pid == 0 || len(r.children) != 3 { // etcd, kube-apiserver and the janitor.
		t.Fatalf("launcher %d, its processes %v", r.pid, r.children)
	}
}

func (r *running) checkNothingLeft(t *testing.T) {
	t.Helper()
	for _, path := range []string{r.dir, r.kubeconfig, r.readyFile} {
		eventually(t, path+" removed", func() bool { return !exists(path) })
	}
	for name, pid := range r.children {
		eventually(t, fmt.Sprintf("%s (%d) gone", name, pid), func() bool { return gone(pid) })
	}
	listener, err := listenShared(fmt.Sprintf("127.0.0.1:%d", r.port))
	must(t, err)
	listener.Close()
}

// gone takes a zombie for gone: where init does not reap, it stays until the container ends.
func gone(pid int) bool {
	status, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return true
	}
	defer status.Close()
	for lines := bufio.NewScanner(status); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "State:") {
			return strings.Contains(lines.Text(), "Z")
		}
	}
	return true
}

func itself(argv []string) []string { return argv }

func TestNothingIsLeftBehind(t *testing.T) {
	underShell := func(argv []string) []string { return append([]string{"sh", "-c", `"$@" & wait`, "sh"}, argv...) }
	for name, test := range map[string]struct {
		wrap func([]string) []string
		end  func(r *running) error
	}{
		"SIGTERM":        {itself, func(r *running) error { return unix.Kill(r.pid, unix.SIGTERM) }},
		"Ctrl-C":         {itself, func(r *running) error { return unix.Kill(-r.command.Process.Pid, unix.SIGINT) }},
		"kill -9":        {itself, func(r *running) error { return unix.Kill(r.pid, unix.SIGKILL) }},
		"kill -9 parent": {underShell, func(r *running) error { return unix.Kill(r.command.Process.Pid, unix.SIGKILL) }},
		"a program dies": {itself, func(r *running) error { return unix.Kill(r.children["etcd"], unix.SIGKILL) }},
		"no janitor": {itself, func(r *running) error {
			return errors.Join(unix.Kill(r.children[JanitorCommand], unix.SIGKILL), unix.Kill(r.pid, unix.SIGTERM))
		}},
		"stopped API too": {itself, func(r *running) error {
			return errors.Join(unix.Kill(r.pid, unix.SIGUSR1), unix.Kill(r.pid, unix.SIGTERM))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r := startLauncher(t, test.wrap)
			must(t, test.end(r))
			r.checkNothingLeft(t)
		})
	}
}

func TestKeepLeavesFilesButNoProcess(t *testing.T) {
	r := startLauncher(t, itself, "--keep")
	must(t, unix.Kill(r.pid, unix.SIGTERM))
	must(t, r.command.Wait())
	if !exists(r.dir) || !exists(r.kubeconfig) || exists(r.readyFile) {
		t.Fatalf("dir %v, kubeconfig %v, ready file %v", exists(r.dir), exists(r.kubeconfig), exists(r.readyFile))
	}
	for _, pid := range r.children {
		eventually(t, "gone", func() bool { return gone(pid) })
	}
}

func TestAPIServerIsStoppedAndStartedAgainOnTheSamePort(t *testing.T) {
	r := startLauncher(t, itself)
	answers := func() bool {
		connection, err := (&http.Client{Transport: insecure()}).Get(fmt.Sprintf("https://127.0.0.1:%d/readyz", r.port))
		if err == nil {
			connection.Body.Close()
		}
		return err == nil
	}
	for range 2 {
		if !answers() {
			t.Fatal("no answer while it is ready")
		}
		must(t, unix.Kill(r.pid, unix.SIGUSR1))
		eventually(t, "stopped", func() bool { return !exists(r.readyFile) && !answers() })
		must(t, unix.Kill(r.pid, unix.SIGUSR2))
		eventually(t, "started again", func() bool { return exists(r.readyFile) && answers() })
	}
}

func TestStartThatFailsSaysWhyAndCleansUp(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "plane")
	binary, err := os.Executable()
	must(t, err)
	bin := t.TempDir()
	content, err := os.ReadFile(binary)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(bin, "launcher"), content, 0o700))
	must(t, os.WriteFile(filepath.Join(bin, "etcd"), []byte("#!/bin/sh\necho no space on this planet\nexit 3\n"), 0o700))
	must(t, os.WriteFile(filepath.Join(bin, "kube-apiserver"), []byte("#!/bin/sh\nexec sleep 600\n"), 0o700))
	command := exec.Command(filepath.Join(bin, "launcher"), "--dir", dir)
	command.Env = append(os.Environ(), "KUBEBUILDER_ASSETS="+bin)
	output, err := command.CombinedOutput()
	if err == nil || !bytes.Contains(output, []byte("no space on this planet")) || !bytes.Contains(output, []byte("etcd ended by itself")) {
		t.Fatalf("%v: %s", err, output)
	}
	if exists(dir) {
		t.Fatal("the folder is still there")
	}
}

// insecure makes a new connection for each request and asks for no certificate: the fake's identity is not what is tested.
func insecure() *http.Transport {
	return &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
}
