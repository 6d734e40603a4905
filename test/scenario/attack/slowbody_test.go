package attack

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/slipway-platform/slipway/test/kit"
)

// slowBodies is the number of slow requests. It exceeds the number of requests from users that API
// Priority and Fairness executes concurrently.
const slowBodies = 400

// TestSlowBodiesDelayNoOtherRequests starts many requests but does not send their bodies.
func TestSlowBodiesDelayNoOtherRequests(t *testing.T) {
	s := tenants(t)
	settings, err := rest.TLSConfigFor(s.Config)
	if err != nil {
		t.Fatal(err)
	}
	settings.NextProtos = []string{"http/1.1"}
	server, err := url.Parse(s.Config.Host)
	if err != nil {
		t.Fatal(err)
	}
	path := kit.CorePath(s.evil, "configmaps")
	begin := func() (net.Conn, error) {
		conn, err := s.Dial(t.Context(), "tcp", server.Host)
		if err != nil {
			return nil, err
		}
		settings := settings.Clone()
		settings.ServerName = server.Hostname()
		secure := tls.Client(conn, settings)
		_, err = fmt.Fprintf(secure, "POST %s HTTP/1.1\r\nHost: %s\r\nImpersonate-User: mallory\r\nImpersonate-Group: system:authenticated\r\n"+
			"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{", path, server.Host)
		return secure, err
	}
	var group sync.WaitGroup
	for range slowBodies {
		group.Go(func() {
			conn, err := begin()
			if err != nil {
				t.Error(err)
				return
			}
			t.Cleanup(func() { conn.Close() })
		})
	}
	group.Wait()
	// If the slow requests occupied all seats, these requests would wait for them to end, or be
	// rejected.
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for n := range 20 {
		body := fmt.Sprintf(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "own-%d"}}`, n)
		for user, project := range map[*kit.User]string{s.alice: s.shop, s.mallory: s.evil} {
			if err := user.Rest.Post().AbsPath(kit.CorePath(project, "configmaps")).Body([]byte(body)).MaxRetries(0).Do(ctx).Error(); err != nil {
				t.Errorf("a request of %s during the slow requests: %v", user.Name, err)
			}
		}
	}
}
