package launch

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// pollInterval is how often a condition is looked at while waiting for it.
const pollInterval = 50 * time.Millisecond

// client talks plain HTTP to the API server; the launcher needs too little of it for client-go.
type client struct {
	base  string
	token string
	http  *http.Client
}

func newClient(base, token string, ca []byte) (*client, error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return nil, errors.New("the certificate authority is not PEM")
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	return &client{base: base, token: token, http: &http.Client{Transport: transport, Timeout: 10 * time.Second}}, nil
}

// do sends one request and returns the status and the body. A body is sent as server-side apply.
func (c *client) do(ctx context.Context, method, path string, body []byte) (int, []byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	request.Header.Set("Accept", "application/json")
	if body != nil {
		request.Header.Set("Content-Type", "application/apply-patch+yaml")
	}
	response, err := c.http.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	return response.StatusCode, content, err
}

// waitFor polls GET path until done says so. The error names what was seen last.
func (c *client) waitFor(ctx context.Context, path string, done func(status int, body []byte) (bool, error)) error {
	var last error
	for {
		status, body, err := c.do(ctx, http.MethodGet, path, nil)
		if err == nil {
			ok, fatal := done(status, body)
			if ok || fatal != nil {
				return fatal
			}
			err = fmt.Errorf("HTTP %d: %.300s", status, body)
		}
		if ctx.Err() == nil || last == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w; last: %w", path, context.Cause(ctx), last)
		case <-time.After(pollInterval):
		}
	}
}

func found(status int, _ []byte) (bool, error) { return status == http.StatusOK, nil }

// apply creates or updates one object; document is YAML or JSON.
func (c *client) apply(ctx context.Context, path string, document []byte) error {
	status, body, err := c.do(ctx, http.MethodPatch, path+"?fieldManager=fairlead-control-plane&force=true", document)
	if err != nil {
		return err
	}
	if status/100 != 2 {
		return fmt.Errorf("HTTP %d: %s", status, messageOf(body))
	}
	return nil
}

// messageOf is the message of a metav1.Status, or the raw body.
func messageOf(body []byte) string {
	var status struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(body, &status) == nil && status.Message != "" {
		return status.Message
	}
	return string(body)
}
