package catalog

import (
	"net"
	"net/http/httptest"
	"testing"

	"github.com/slipway-platform/slipway/internal/osbtest"
	"github.com/slipway-platform/slipway/test/kit"
)

// startBroker starts a broker at an address outside the cluster, and returns its URL.
func startBroker(t *testing.T, c *kit.Cluster) (b *osbtest.Broker, url string) {
	t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(c.Distant.String(), "0"))
	if err != nil {
		t.Fatal(err)
	}
	b = osbtest.New()
	server := httptest.NewUnstartedServer(b)
	server.Listener.Close()
	server.Listener = listener
	server.Start()
	t.Cleanup(server.Close)
	return b, server.URL
}
