package platform

import (
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/platform/record"
)

func TestNamesOfControlPlaneAreReserved(t *testing.T) {
	h := loadHost(t, "")
	h.address = netip.MustParseAddr("192.0.2.1")
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

func TestJoinedHostRunsNoControlPlane(t *testing.T) {
	dir := t.TempDir()
	names := func() string {
		h, err := Load(dir, "")
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, process := range h.Processes() {
			names = append(names, process.Name)
		}
		return strings.Join(names, " ")
	}
	if got := names(); got != "control-plane containerd node" {
		t.Errorf("a host runs %s", got)
	}
	h, err := Load(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(h.membershipFile()), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := (record.Membership{Masters: []string{"192.0.2.1:8443"}}).Write(h.membershipFile()); err != nil {
		t.Fatal(err)
	}
	if got := names(); got != "containerd node" {
		t.Errorf("a joined host runs %s", got)
	}
	if err := os.WriteFile(h.membershipFile(), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(dir, ""); err == nil || !strings.Contains(err.Error(), "restore the file") {
		t.Errorf("a damaged record: %v", err)
	}
}
