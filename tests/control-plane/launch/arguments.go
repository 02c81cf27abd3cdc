package launch

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// etcd speaks over unix sockets in its working folder, which no other user can enter and where no port is needed. The names
// are relative because the kernel allows about 100 characters for a whole path, and look like host:port
// because etcd wants that of every URL that it would tell to others.
const (
	etcdClientURL = "unix://etcd-client:0"
	etcdPeerURL   = "unix://etcd-peer:0"
)

// locate finds how to run a program: the one in KUBEBUILDER_ASSETS before the one inside this binary.
func locate(name, assets, self string, builtin []string) ([]string, error) {
	if assets != "" {
		path := filepath.Join(assets, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return []string{path}, nil
		}
	}
	if slices.Contains(builtin, name) {
		return []string{self, name}, nil
	}
	if assets == "" {
		return nil, fmt.Errorf("%s is not in this binary and KUBEBUILDER_ASSETS is not set", name)
	}
	return nil, fmt.Errorf("%s is neither in %s nor in this binary", name, assets)
}

func etcdArguments() []string {
	return []string{
		"--name=fairlead", "--data-dir=etcd",
		"--listen-client-urls=" + etcdClientURL, "--advertise-client-urls=" + etcdClientURL,
		"--listen-peer-urls=" + etcdPeerURL, "--initial-advertise-peer-urls=" + etcdPeerURL,
		"--initial-cluster=fairlead=" + etcdPeerURL,
		"--unsafe-no-fsync", "--quota-backend-bytes=4294967296", "--log-level=warn",
	}
}

func (o *options) apiserverArguments(portNumber int) []string {
	arguments := []string{
		"--etcd-servers=" + etcdClientURL,
		"--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", portNumber), "--permit-port-sharing=true",
		"--tls-cert-file=keys/server.crt", "--tls-private-key-file=keys/server.key", "--client-ca-file=keys/ca.crt",
		"--token-auth-file=keys/tokens.csv", "--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=keys/service-account.key",
		"--service-account-signing-key-file=keys/service-account.key",
		"--service-cluster-ip-range=10.0.0.0/24", "--allow-privileged=true",
		"--endpoint-reconciler-type=none", // A Service may not point to loopback.
	}
	if plugins := o.disabledAdmission(); len(plugins) > 0 {
		arguments = append(arguments, "--disable-admission-plugins="+strings.Join(plugins, ","))
	}
	return append(arguments, o.apiserverFlags...)
}

func (o *options) controllerManagerArguments() []string {
	return append([]string{
		"--kubeconfig=keys/kube-controller-manager.kubeconfig", "--controllers=" + o.controllers,
		"--service-account-private-key-file=keys/service-account.key", "--root-ca-file=keys/ca.crt",
		"--leader-elect=false", "--secure-port=0",
		// Twenty requests a second, the default, would be the slowest part of every test that makes pods through a Job.
		"--kube-api-qps=500", "--kube-api-burst=1000",
		// kwok's nodes have no leases (kwokArguments), and a heartbeat every five to ten minutes.
		"--node-monitor-grace-period=1h",
	}, o.controllerManagerFlags...)
}

func (o *options) schedulerArguments() []string {
	return append([]string{
		"--kubeconfig=keys/kube-scheduler.kubeconfig", "--leader-elect=false", "--secure-port=0",
	}, o.schedulerFlags...)
}

// kwokArguments also writes the stages to DIR/kwok, because kwok reads files only.
func (o *options) kwokArguments(stages fs.FS) ([]string, error) {
	if o.kwokStages != "" {
		stages = os.DirFS(o.kwokStages)
	}
	files, err := fs.Glob(stages, "*.yaml")
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("kwok: no *.yaml among its stages %s", o.kwokStages)
	}
	arguments := []string{
		"--kubeconfig=keys/kwok.kubeconfig", "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
		// With leases, kwok takes no notice of a pod that is bound in the moment between the node's creation and its lease.
		"--node-lease-duration-seconds=0", "--cidr=10.64.0.0/10",
	}
	for _, file := range files {
		content, err := fs.ReadFile(stages, file)
		if err != nil {
			return nil, err
		}
		if err := writeFile(filepath.Join(o.dir, "kwok", file), content); err != nil {
			return nil, err
		}
		arguments = append(arguments, "--config="+filepath.Join("kwok", file))
	}
	return arguments, nil
}
