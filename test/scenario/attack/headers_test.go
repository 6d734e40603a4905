package attack

import (
	"net"
	"strconv"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/slipway-platform/slipway/test/kit"
)

// TestClientsCannotFillMemoryWithHeaders sends long URLs to each server that accepts clients
// without a login. URLs are part of the request headers, which a server keeps in memory until they
// are complete.
func TestClientsCannotFillMemoryWithHeaders(t *testing.T) {
	s := tenants(t)
	const usual, large = 1 << 10, 200 << 10
	for name, port := range map[string]int{"API server": 8443, "registry": 5000, "kubelet": 10250} {
		url := "https://" + net.JoinHostPort(s.Address.String(), strconv.Itoa(port)) + "/healthz?x="
		if got := s.anonymous(url + strings.Repeat("x", usual)); strings.HasPrefix(got, "431") || got == "closed" {
			t.Errorf("%s: a usual URL gets %q", name, got)
		}
		if got := s.anonymous(url + strings.Repeat("x", large)); !strings.HasPrefix(got, "431") && got != "closed" {
			t.Errorf("%s: a URL of %d bytes gets %q", name, large, got)
		}
	}
}

// TestTenantCannotFillMemoryWithWatches opens a watch with a long selector, which the API server
// keeps in memory.
func TestTenantCannotFillMemoryWithWatches(t *testing.T) {
	s := tenants(t)
	const long = 5 << 10
	err := s.mallory.Rest.Get().AbsPath(kit.CorePath(s.evil, "configmaps")).Param("watch", "true").
		Param("labelSelector", strings.Repeat("a", long)).Do(t.Context()).Error()
	if !apierrors.IsRequestEntityTooLargeError(err) || !strings.Contains(err.Error(), "the query of a watch has more than 4096 bytes") {
		t.Errorf("a watch with a long selector: %v", err)
	}
}
