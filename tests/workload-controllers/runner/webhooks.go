package runner

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"time"

	admission "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
)

// Webhook is one call of the API server to the project's own handler.
type Webhook struct {
	// Path is where the handler was registered.
	Path string
	// Mutating tells the two kinds apart.
	Mutating                 bool
	Group, Version, Resource string
	Operations               []admission.OperationType
	// Label limits the webhook to objects that have this label, so that nothing else of the control plane depends on this program.
	Label string
}

// hookServer is a webhook server of controller-runtime. The one that comes with it needs a port chosen beforehand, and a
// certificate in files.
type hookServer struct {
	mux      *http.ServeMux
	listener net.Listener
	// authority is the certificate as PEM. It is its own authority.
	authority []byte
}

// listen takes a free port of loopback. Calls wait there until Start.
func listen() (*hookServer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "webhooks of a test"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(7 * 24 * time.Hour),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
		IsCA:                  true,
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{certificate}, PrivateKey: key}},
		NextProtos:   []string{"h2", "http/1.1"},
	})
	if err != nil {
		return nil, err
	}
	var authority bytes.Buffer
	if err := pem.Encode(&authority, &pem.Block{Type: "CERTIFICATE", Bytes: certificate}); err != nil {
		return nil, err
	}
	return &hookServer{mux: http.NewServeMux(), listener: listener, authority: authority.Bytes()}, nil
}

func (s *hookServer) NeedLeaderElection() bool                   { return false }
func (s *hookServer) Register(path string, handler http.Handler) { s.mux.Handle(path, handler) }
func (s *hookServer) WebhookMux() *http.ServeMux                 { return s.mux }
func (s *hookServer) StartedChecker() healthz.Checker            { return healthz.Ping }

func (s *hookServer) Start(ctx context.Context) error {
	server := &http.Server{Handler: s.mux, ReadHeaderTimeout: patience}
	// The API server keeps its connections open, so there is nothing to wait for.
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	if err := server.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// url is where the API server finds the handler of that path.
func (s *hookServer) url(path string) string { return "https://" + s.listener.Addr().String() + path }

// configurations are the objects that make the API server call the webhooks. One may be without any webhook.
func configurations(program Program, hooks *hookServer) (*admission.MutatingWebhookConfiguration, *admission.ValidatingWebhookConfiguration) {
	mutating := &admission.MutatingWebhookConfiguration{ObjectMeta: meta.ObjectMeta{Name: program.Name}}
	validating := &admission.ValidatingWebhookConfiguration{ObjectMeta: meta.ObjectMeta{Name: program.Name}}
	none := admission.SideEffectClassNone // Else the API server would not call it for a dry run.
	for i, hook := range program.Webhooks {
		url := hooks.url(hook.Path)
		name := fmt.Sprintf("h%d.%s.fairlead.dev", i, program.Name)
		to := admission.WebhookClientConfig{URL: &url, CABundle: hooks.authority}
		rules := []admission.RuleWithOperations{{
			Operations: hook.Operations,
			Rule: admission.Rule{
				APIGroups: []string{hook.Group}, APIVersions: []string{hook.Version}, Resources: []string{hook.Resource},
			},
		}}
		selector := &meta.LabelSelector{}
		if hook.Label != "" {
			selector.MatchExpressions = []meta.LabelSelectorRequirement{{Key: hook.Label, Operator: meta.LabelSelectorOpExists}}
		}
		if hook.Mutating {
			mutating.Webhooks = append(mutating.Webhooks, admission.MutatingWebhook{
				Name: name, ClientConfig: to, Rules: rules, ObjectSelector: selector, SideEffects: &none,
				AdmissionReviewVersions: []string{"v1"},
			})
		} else {
			validating.Webhooks = append(validating.Webhooks, admission.ValidatingWebhook{
				Name: name, ClientConfig: to, Rules: rules, ObjectSelector: selector, SideEffects: &none,
				AdmissionReviewVersions: []string{"v1"},
			})
		}
	}
	return mutating, validating
}

// configure creates the configurations anew. A program that was killed leaves its own behind, with a port where nobody listens.
func configure(ctx context.Context, config *rest.Config, program Program, hooks *hookServer) error {
	if err := unconfigure(config, program); err != nil {
		return err
	}
	api, err := client.New(config, client.Options{})
	if err != nil {
		return err
	}
	mutating, validating := configurations(program, hooks)
	return errors.Join(api.Create(ctx, mutating), api.Create(ctx, validating))
}

// unconfigure removes the configurations, also after the signal.
func unconfigure(config *rest.Config, program Program) error {
	if len(program.Webhooks) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	api, err := client.New(config, client.Options{})
	if err != nil {
		return err
	}
	var errs []error
	for _, object := range []client.Object{&admission.MutatingWebhookConfiguration{}, &admission.ValidatingWebhookConfiguration{}} {
		object.SetName(program.Name)
		if err := api.Delete(ctx, object); !apierrors.IsNotFound(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// probe returns when the API server calls the webhooks.
func probe(ctx context.Context, program Program, api client.Client) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		object := program.Probe.DeepCopyObject().(client.Object)
		err := api.Create(ctx, object, client.DryRunAll)
		if err == nil && program.Changed(object) {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(errors.New("the API server does not call the webhooks"), err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
