package controlplane

import (
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/slipway-platform/slipway/platform/host"
)

func TestNamesOfControlPlaneAreReserved(t *testing.T) {
	h := loadHost(t, "")
	h.Address = netip.MustParseAddr("192.0.2.1")
	options := h.hostOptions()
	for _, name := range []string{"localhost", "127.0.0.1", "kubernetes", "172.30.0.1", "openshift.default.svc", "docker-registry.default.svc", h.Node.NodeName} {
		if !slices.Contains(options.Reserved, name) {
			t.Errorf("%s is not reserved", name)
		}
	}
	if len(options.Networks) != 2 || !options.Networks[0].Contains(netip.MustParseAddr("10.128.0.1")) {
		t.Errorf("networks are %v", options.Networks)
	}
}

// loadHost returns a host with the given control plane configuration.
func loadHost(t *testing.T, master string) *Host {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte("apiVersion: v1\nkind: MasterConfig\n"+master+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h, err := host.Load("/data", file)
	if err != nil {
		t.Fatal(err)
	}
	return newHost(h)
}
