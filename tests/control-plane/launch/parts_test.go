package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func TestReservedPortIsOnlyForListenersThatShareIt(t *testing.T) {
	reserved, err := reservePort()
	if err != nil {
		t.Fatal(err)
	}
	defer reserved.release()
	address := fmt.Sprintf("127.0.0.1:%d", reserved.number)
	if listener, err := net.Listen("tcp", address); !errors.Is(err, unix.EADDRINUSE) {
		t.Fatalf("a stranger's listen on the reserved port: %v, %v", listener, err)
	}
	for round := range 2 { // The API server is started, and started again.
		if connection, err := net.Dial("tcp", address); !errors.Is(err, unix.ECONNREFUSED) {
			t.Fatalf("round %d: dialled the port while no process listens: %v, %v", round, connection, err)
		}
		listener, err := listenShared(address)
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		connection, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		connection.Close()
		listener.Close()
	}
}

// listenShared listens as kube-apiserver --permit-port-sharing does.
func listenShared(address string) (net.Listener, error) {
	config := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		var result error
		err := raw.Control(func(descriptor uintptr) {
			result = unix.SetsockoptInt(int(descriptor), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
		})
		return errors.Join(err, result)
	}}
	return config.Listen(context.Background(), "tcp", address)
}

func TestParseDefinitions(t *testing.T) {
	const crd = "kind: CustomResourceDefinition\nmetadata: {name: NAME}\nspec: {group: g}\n"
	named := func(name string) string { return strings.Replace(crd, "NAME", name, 1) }
	for name, test := range map[string]struct {
		content string
		names   []string
		fails   string
	}{
		"one":                      {content: named("a"), names: []string{"a"}},
		"two":                      {content: named("a") + "---\n" + named("b"), names: []string{"a", "b"}},
		"comment before":           {content: "# licence\n---\n" + named("a") + "--- # end\n", names: []string{"a"}},
		"three dashes in a text":   {content: named("a") + "d: |\n  ---\n  x\n", names: []string{"a"}},
		"json":                     {content: `{"kind":"CustomResourceDefinition","metadata":{"name":"a"}}`, names: []string{"a"}},
		"another kind":             {content: "kind: Pod\nmetadata: {name: a}\n", fails: `kind "Pod"`},
		"no name":                  {content: "kind: CustomResourceDefinition\n", fails: `name ""`},
		"not yaml":                 {content: "a: [\n", fails: "f.yaml"},
		"second document is wrong": {content: named("a") + "---\nkind: Pod\n", fails: `kind "Pod"`},
	} {
		t.Run(name, func(t *testing.T) {
			definitions, err := parseDefinitions("f.yaml", []byte(test.content))
			if test.fails != "" {
				if err == nil || !strings.Contains(err.Error(), test.fails) {
					t.Fatalf("error %v, want one with %q", err, test.fails)
				}
				return
			}
			var names []string
			for _, d := range definitions {
				names = append(names, d.Metadata.Name)
			}
			if err != nil || !slices.Equal(names, test.names) {
				t.Fatalf("got %v, %v; want %v", names, err, test.names)
			}
		})
	}
}

func TestReadDefinitionsWantsAtLeastOne(t *testing.T) {
	if _, err := readDefinitions(t.TempDir()); err == nil {
		t.Fatal("an empty folder was accepted")
	}
	if _, err := readDefinitions(filepath.Join(t.TempDir(), "missing")); err == nil {
		t.Fatal("a missing folder was accepted")
	}
}

func TestEstablished(t *testing.T) {
	const conditions = `{"status":{"conditions":[%s]}}`
	for name, test := range map[string]struct {
		status int
		body   string
		done   bool
		fails  bool
	}{
		"yes":       {200, fmt.Sprintf(conditions, `{"type":"Established","status":"True"}`), true, false},
		"not yet":   {200, fmt.Sprintf(conditions, `{"type":"Established","status":"False"}`), false, false},
		"no status": {200, `{}`, false, false},
		"not found": {404, fmt.Sprintf(conditions, `{"type":"Established","status":"True"}`), false, false},
		"taken":     {200, fmt.Sprintf(conditions, `{"type":"NamesAccepted","status":"False","message":"taken"}`), false, true},
	} {
		if done, err := established(test.status, []byte(test.body)); done != test.done || (err != nil) != test.fails {
			t.Errorf("%s: %v, %v", name, done, err)
		}
	}
}

func TestDisabledAdmission(t *testing.T) {
	for controllers, want := range map[string][]string{
		"":                             {"ServiceAccount", "TaintNodesByCondition"},
		defaultControllers:             {"TaintNodesByCondition"},
		"job,serviceaccount":           {"TaintNodesByCondition"},
		"*":                            nil,
		"*,-node-lifecycle-controller": {"TaintNodesByCondition"},
		"nodelifecycle":                {"ServiceAccount"},
	} {
		if got := (&options{controllers: controllers}).disabledAdmission(); !slices.Equal(got, want) {
			t.Errorf("controllers %q: disabled %v, want %v", controllers, got, want)
		}
	}
}

func TestLocatePrefersAssets(t *testing.T) {
	assets := t.TempDir()
	must(t, os.WriteFile(filepath.Join(assets, "etcd"), nil, 0o700))
	must(t, os.WriteFile(filepath.Join(assets, "kube-scheduler"), nil, 0o600)) // Cannot be run.
	builtin := []string{"etcd", "kube-scheduler"}
	for name, test := range map[string]struct {
		program, assets string
		want            []string
	}{
		"from assets":         {"etcd", assets, []string{filepath.Join(assets, "etcd")}},
		"not executable":      {"kube-scheduler", assets, []string{"self", "kube-scheduler"}},
		"no assets":           {"etcd", "", []string{"self", "etcd"}},
		"nowhere":             {"kwok", assets, nil},
		"nowhere, no assets ": {"kwok", "", nil},
	} {
		got, err := locate(test.program, test.assets, "self", builtin)
		if !slices.Equal(got, test.want) || (err == nil) != (test.want != nil) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

func TestClaimTakesOnlyFoldersOfItsOwn(t *testing.T) {
	foreign := t.TempDir()
	must(t, os.WriteFile(filepath.Join(foreign, "thesis.txt"), nil, 0o600))
	if _, err := claim(foreign); err == nil {
		t.Fatal("a folder with a file that is not its own was accepted; it would be removed in the end")
	}
	dir := filepath.Join(t.TempDir(), "new")
	lock, err := claim(dir)
	must(t, err)
	if _, err := claim(dir); err == nil {
		t.Fatal("two launchers in one folder")
	}
	lock.Close()
	again, err := claim(dir)
	must(t, err)
	again.Close()
}

func TestForeignKubeconfigIsLeftAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	must(t, refuseForeign(path))
	must(t, os.WriteFile(path, []byte("apiVersion: v1\n"), 0o600))
	if refuseForeign(path) == nil {
		t.Fatal("a user's kubeconfig would be overwritten")
	}
	must(t, os.WriteFile(path, []byte(kubeconfigHeader+"apiVersion: v1\n"), 0o600))
	must(t, refuseForeign(path))
}

func TestParseOptions(t *testing.T) {
	t.Chdir(t.TempDir())
	o, err := parseOptions([]string{"--dir", "d", "--crds", "x", "--crds=y", "--controller-manager", "--kwok", "builtin"}, "", io.Discard)
	must(t, err)
	here, err := os.Getwd()
	must(t, err)
	if o.dir != filepath.Join(here, "d") || o.kubeconfig != filepath.Join(here, "d", "kubeconfig") || o.kwok != builtinKwok ||
		!slices.Equal(o.crdDirs, []string{filepath.Join(here, "x"), filepath.Join(here, "y")}) || o.controllers != defaultControllers {
		t.Fatalf("%+v", o)
	}
	for _, wrong := range [][]string{{"--no-such-flag"}, {"--dir", "d", "stray"}} {
		if _, err := parseOptions(wrong, "", io.Discard); err == nil {
			t.Errorf("%v was accepted", wrong)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
