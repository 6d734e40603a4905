package registry

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/internal/certtest"
	"github.com/slipway-platform/slipway/internal/componenttest"
)

func TestOtherMasterForwardsRequestsToRegistry(t *testing.T) {
	authority := certtest.New(t)
	registry, other := authority.Issue(t, "registry", "registry.svc"), authority.Issue(t, "other")
	certificate, err := tls.LoadX509KeyPair(registry.CertFile, registry.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, _, _ := r.BasicAuth()
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s for %s of %s: %s", r.Method, r.URL, user, r.Host, body)
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	server.StartTLS()
	defer server.Close()

	targetErr := error(nil)
	forward := &Forward{
		Address: componenttest.UnusedAddress(t), CertFile: other.CertFile, KeyFile: other.KeyFile, Host: "registry.svc:5000", CAFile: authority.File,
		Target: func() (string, error) { return server.Listener.Addr().String(), targetErr },
	}
	componenttest.Run(t, forward.Run)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authority.Pool()}, DisableKeepAlives: true}}
	send := func() (status int, content string) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, "https://"+forward.Address+"/v2/shop/app/blobs/uploads/1?part=2", strings.NewReader("layer"))
		if err != nil {
			t.Fatal(err)
		}
		request.SetBasicAuth("ann", "secret")
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, string(body)
	}
	want := "PATCH /v2/shop/app/blobs/uploads/1?part=2 for ann of " + forward.Address + ": layer"
	if status, content := send(); status != http.StatusOK || content != want {
		t.Errorf("got %d, %q, want %q", status, content, want)
	}
	server.CloseClientConnections()
	targetErr = errors.New("no address")
	if status, content := send(); status != http.StatusServiceUnavailable || !strings.Contains(content, "the master that runs the registry does not respond: no address") {
		t.Errorf("without the registry, got %d, %q", status, content)
	}
}

func TestErrorNamesTheSettingOfTheAddress(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	forward := &Forward{Address: listener.Addr().String(), CAFile: certtest.New(t).File}
	if err := forward.Run(t.Context(), func() {}); err == nil || !strings.Contains(err.Error(), "slipway.registry.bindAddress") {
		t.Errorf("got error %v", err)
	}
}
