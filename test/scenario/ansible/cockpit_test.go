package ansible

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/internal/certtest"
	"github.com/slipway-platform/slipway/test/kit"
)

// checkCockpit checks that Cockpit responds at the URL that the web console uses for the node.
func checkCockpit(t *testing.T, c *kit.Cluster, host *kit.Machine) {
	t.Helper()
	authority := certtest.New(t)
	startCockpit(t, host, authority.Issue(t, "cockpit"))
	url := c.OC("get", "node", "node.example.com", "-o", `jsonpath={.metadata.annotations.slipway\.openshift\.io/cockpit}`)
	if want := "https://" + net.JoinHostPort(host.Address.String(), "9090"); url != want {
		t.Fatalf("the node has Cockpit at %q, want %q", url, want)
	}
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: authority.Pool(), ServerName: "localhost", MinVersion: tls.VersionTLS12},
		DialContext:       host.Dial,
		DisableKeepAlives: true,
	}}
	c.WaitFor("Cockpit", func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/ping", http.NoBody)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		defer func() { _ = response.Body.Close() }()
		var resp struct{ Service string }
		if err := json.NewDecoder(response.Body).Decode(&resp); err != nil {
			return err
		}
		if resp.Service != "cockpit" {
			return fmt.Errorf("the service is %q, want cockpit", resp.Service)
		}
		return nil
	})
}

// startCockpit starts Cockpit's web server. On production hosts, systemd starts it.
func startCockpit(t *testing.T, host *kit.Machine, pair certtest.Pair) {
	t.Helper()
	dir := t.TempDir()
	certificates := filepath.Join(dir, "cockpit", "ws-certs.d")
	err := errors.Join(
		os.MkdirAll(certificates, 0o755),
		os.Symlink(pair.CertFile, filepath.Join(certificates, "0.cert")),
		os.Symlink(pair.KeyFile, filepath.Join(certificates, "0.key")),
	)
	if err != nil {
		t.Fatal(err)
	}
	namespace := "/proc/" + strconv.Itoa(os.Getpid()) + "/fd/" + strconv.Itoa(host.FD())
	server := exec.CommandContext(t.Context(), "nsenter", "--net="+namespace, "/usr/lib/cockpit/cockpit-ws", "--address", host.Address.String())
	server.Env = append(os.Environ(), "XDG_CONFIG_DIRS="+dir)
	var log strings.Builder
	server.Stdout, server.Stderr = &log, &log
	if err := server.Start(); err != nil {
		t.Fatalf("start Cockpit: %v", err)
	}
	t.Cleanup(func() {
		_ = server.Wait() // the test's context stops the server
		if t.Failed() {
			t.Logf("Cockpit: %s", log.String())
		}
	})
}
