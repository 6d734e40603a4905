package cni

import (
	"net/netip"
	"os"
	"path/filepath"
	"testing"
)

func TestReserveUsesNextAddress(t *testing.T) {
	s := leases{dir: t.TempDir(), subnet: netip.MustParsePrefix("10.128.0.0/29")}
	reserve := func(device string) string {
		l, err := s.reserve(lease{Device: device})
		if err != nil {
			return err.Error()
		}
		return l.Address.String()
	}
	for i, want := range []string{"10.128.0.2", "10.128.0.3", "10.128.0.4", "10.128.0.5", "10.128.0.6"} {
		if got := reserve(string(rune('a' + i))); got != want {
			t.Errorf("address %d: got %s, want %s", i, got, want)
		}
	}
	if got, want := reserve("f"), "no free address in 10.128.0.0/29: 5 are in use"; got != want {
		t.Errorf("full subnet: got %q, want %q", got, want)
	}
	for _, address := range []string{"10.128.0.3", "10.128.0.5"} {
		if err := s.release(netip.MustParseAddr(address)); err != nil {
			t.Fatal(err)
		}
	}
	if got := reserve("g"); got != "10.128.0.3" {
		t.Errorf("after the end of the subnet: got %s", got)
	}
	if got := reserve("h"); got != "10.128.0.5" {
		t.Errorf("between two leases: got %s", got)
	}
}

func TestDamagedLeaseReservesAddress(t *testing.T) {
	s := leases{dir: t.TempDir(), subnet: netip.MustParsePrefix("10.128.0.0/24")}
	if err := os.WriteFile(filepath.Join(s.dir, "10.128.0.2.json"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := s.reserve(lease{Device: "a"})
	if err != nil {
		t.Fatal(err)
	}
	if got := l.Address.String(); got != "10.128.0.3" {
		t.Errorf("got %s", got)
	}
}
