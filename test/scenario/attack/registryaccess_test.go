package attack

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
)

// registryEvents returns the audit log entries for registry requests in a project. Each entry
// consists of the user, the verb and the status code.
func (s *stage) registryEvents(project string) (events []string, err error) {
	content, err := os.ReadFile(s.Path("log", "audit.log"))
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(content)) {
		var event struct {
			RequestURI, Verb string
			User             struct{ Username string }
			ResponseStatus   struct{ Code int }
		}
		if strings.Contains(line, `"/v2/`+project+`/`) || strings.Contains(line, `"requestURI":"/v2/`+project+"/") {
			if err := json.Unmarshal([]byte(line), &event); err != nil {
				return nil, fmt.Errorf("read audit log: %w", err)
			}
			_, path, _ := strings.Cut(event.RequestURI, "/v2/"+project+"/")
			path, _, _ = strings.Cut(path, "?")
			events = append(events, fmt.Sprintf("%s %s %s %d", event.User.Username, event.Verb, path, event.ResponseStatus.Code))
		}
	}
	return events, nil
}

func TestRegistryRequestsAreAudited(t *testing.T) {
	s := tenants(t)
	s.waitBuilder(t, s.evil)
	s.waitBuilder(t, s.shop)
	if err := s.push(t, s.shop, "app:latest", noise(t, 10<<10)); err != nil {
		t.Fatal(err)
	}
	manifest := "/v2/" + s.shop + "/app/manifests/latest"
	if status, body := s.pull(t, "builder", s.shop, "GET", manifest); status != http.StatusOK {
		t.Fatalf("a pull of the owner: %d %s", status, body)
	}
	for _, method := range []string{"GET", "PUT", "DELETE"} {
		if status, body := s.pull(t, "builder", s.evil, method, manifest); status == http.StatusOK {
			t.Errorf("%s of another tenant: %d %s", method, status, body)
		}
	}
	owner, other := "system:serviceaccount:"+s.shop+":builder", "system:serviceaccount:"+s.evil+":builder"
	s.WaitFor("the audit log", func(context.Context) error {
		events, err := s.registryEvents(s.shop)
		if err != nil {
			return err
		}
		all := strings.Join(events, "\n")
		for _, want := range []string{
			owner + " update app/manifests/latest 201", owner + " get app/manifests/latest 200", other + " get app/manifests/latest 403",
			other + " update app/manifests/latest 403", other + " delete app/manifests/latest 403",
		} {
			if !strings.Contains(all, want) {
				return fmt.Errorf("it lacks %q:\n%s", want, all)
			}
		}
		return nil
	})
}

// TestInvalidTokensOfTenantDelayNoOtherTenant sends invalid tokens for one project from a node's
// address, as a project's invalid pull secrets do. The node pulls images for all projects from this
// address.
func TestInvalidTokensOfTenantDelayNoOtherTenant(t *testing.T) {
	s := tenants(t)
	s.waitBuilder(t, s.shop)
	transport := s.transport().Clone()
	t.Cleanup(transport.CloseIdleConnections)
	transport.DialContext = func(ctx context.Context, network, _ string) (conn net.Conn, err error) {
		dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 68)}}
		err = s.Do(func() error {
			conn, err = dialer.DialContext(ctx, network, "127.0.0.1:5000")
			return err
		})
		return conn, err
	}
	client := &http.Client{Transport: transport}
	send := func(token string) int {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+s.Address.String()+":5000/v2/"+s.shop+"/app/manifests/latest", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.SetBasicAuth("any", token)
		resp, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	for i := range 120 {
		if got := send(fmt.Sprintf("sha256~guess-%d", i)); got != http.StatusUnauthorized {
			t.Fatalf("invalid token %d: %d", i, got)
		}
	}
	// The registry must accept a valid token, even if the address has not sent a valid token
	// before.
	if got := send(strings.TrimSpace(s.OC("create", "token", "builder", "-n", s.shop))); got != http.StatusNotFound {
		t.Errorf("a valid token: %d", got)
	}
}
