package platform

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/platform/host"
	"github.com/slipway-platform/slipway/platform/record"
)

func TestJoinedHostRunsNoControlPlane(t *testing.T) {
	dir := t.TempDir()
	names := func() string {
		h, err := host.Load(dir, "")
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, process := range Processes(h) {
			names = append(names, process.Name)
		}
		return strings.Join(names, " ")
	}
	if got := names(); got != "control-plane containerd node" {
		t.Errorf("a host runs %s", got)
	}
	h, err := host.Load(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(h.MembershipFile()), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := (record.Membership{Masters: []string{"192.0.2.1:8443"}}).Write(h.MembershipFile()); err != nil {
		t.Fatal(err)
	}
	if got := names(); got != "containerd node" {
		t.Errorf("a joined host runs %s", got)
	}
	if err := os.WriteFile(h.MembershipFile(), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := host.Load(dir, ""); err == nil || !strings.Contains(err.Error(), "restore the file") {
		t.Errorf("a damaged record: %v", err)
	}
}
