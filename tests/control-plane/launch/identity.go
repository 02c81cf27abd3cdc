package launch

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Users of the control plane. The API server knows each by a random token in a file.
const (
	adminUser             = "fairlead-admin"
	controllerManagerUser = "system:kube-controller-manager"
	schedulerUser         = "system:kube-scheduler" // RBAC's own role for it is enough.
	kwokUser              = "kwok"
	mastersGroup          = "system:masters" // Everything is allowed.
)

// kubeconfigHeader is how a kubeconfig of ours is known, so that no other is overwritten, and later removed.
const kubeconfigHeader = "# Written by fairlead-control-plane, which removes it when it ends.\n"

// refuseForeign returns an error if path is a file that is not one of our kubeconfigs.
func refuseForeign(path string) error {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && !strings.HasPrefix(string(content), kubeconfigHeader) {
		return fmt.Errorf("%s exists and was not written by this program: it will not be overwritten", path)
	}
	return err
}

// identity is all that lets a client in: the authority, the address and one token per user.
type identity struct {
	server string
	ca     []byte
	tokens map[string]string
}

// writeIdentity makes keys, certificates, tokens and the kubeconfigs of the programs in folder, and the user's kubeconfig.
func writeIdentity(folder, kubeconfig string, portNumber int) (*identity, error) {
	ca, err := newAuthority()
	if err != nil {
		return nil, err
	}
	server, err := ca.server()
	if err != nil {
		return nil, err
	}
	admin, err := ca.client(adminUser, mastersGroup)
	if err != nil {
		return nil, err
	}
	id := &identity{server: fmt.Sprintf("https://127.0.0.1:%d", portNumber), ca: ca.pem, tokens: map[string]string{}}
	var table strings.Builder
	for _, user := range []string{adminUser, controllerManagerUser, schedulerUser, kwokUser} {
		token, err := newToken()
		if err != nil {
			return nil, err
		}
		id.tokens[user] = token
		group := mastersGroup
		if user == schedulerUser {
			group = ""
		}
		fmt.Fprintf(&table, "%s,%s,%s,%q\n", token, user, user, group)
	}
	files := map[string][]byte{
		"ca.crt":     ca.pem,
		"server.crt": server.certificate,
		"server.key": server.key,
		"tokens.csv": []byte(table.String()),

		"kube-controller-manager.kubeconfig": id.tokenKubeconfig(controllerManagerUser),
		"kube-scheduler.kubeconfig":          id.tokenKubeconfig(schedulerUser),
		"kwok.kubeconfig":                    id.tokenKubeconfig(kwokUser),
		"admin-certificate.kubeconfig":       id.certificateKubeconfig(adminUser, admin),
	}
	for name, content := range files {
		if err := writeFile(filepath.Join(folder, name), content); err != nil {
			return nil, err
		}
	}
	if err := ensureServiceAccountKey(filepath.Join(folder, "service-account.key")); err != nil {
		return nil, err
	}
	return id, writeFile(kubeconfig, id.tokenKubeconfig(adminUser))
}

func (id *identity) tokenKubeconfig(user string) []byte {
	return id.kubeconfig(user, "    token: "+id.tokens[user]+"\n")
}

func (id *identity) certificateKubeconfig(user string, p pair) []byte {
	return id.kubeconfig(user, "    client-certificate-data: "+base64.StdEncoding.EncodeToString(p.certificate)+"\n"+
		"    client-key-data: "+base64.StdEncoding.EncodeToString(p.key)+"\n")
}

func (id *identity) kubeconfig(user, credentials string) []byte {
	return []byte(kubeconfigHeader + `apiVersion: v1
kind: Config
clusters:
- name: fairlead-test
  cluster:
    server: ` + id.server + `
    certificate-authority-data: ` + base64.StdEncoding.EncodeToString(id.ca) + `
users:
- name: ` + user + `
  user:
` + credentials + `contexts:
- name: fairlead-test
  context:
    cluster: fairlead-test
    user: ` + user + `
    namespace: default
current-context: fairlead-test
`)
}
