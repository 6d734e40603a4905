package cni

import (
	"net/netip"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/slipway-platform/slipway/internal/eventually"
	"github.com/slipway-platform/slipway/network/internal/hosttest"
	"github.com/slipway-platform/slipway/network/nat"
)

func (b *bench) reconcile() int {
	b.Helper()
	changed, err := Reconcile(b.Context(), b.config)
	b.must(err)
	return changed
}

func TestReconcileRemovesUnused(t *testing.T) {
	b := newBench(t)
	namespace, keptAddress := b.pod("kept", ports(portMapping{HostPort: 8080, ContainerPort: 80}))
	dead := hosttest.NewNamespace(t, "dead")
	b.add(dead, ports(portMapping{HostPort: 8081, ContainerPort: 80}))
	dead.Delete()
	eventually.True(t, "kernel deletes the device of the dead pod", func() bool { return !deviceExists(deviceName("dead", "eth0")) })

	// Simulate a crash immediately after the lease was written, and a crash that lost the lease.
	_, err := b.config.leases().reserve(lease{Device: deviceName("crashed", "eth0")})
	b.must(err)
	orphan := hosttest.NewNamespace(t, "lost")
	result := b.add(orphan, nil)
	b.must(b.config.leases().release(netip.MustParseAddr(result.IPs[0].Address.IP.String())))
	b.must(nat.Publish(t.Context(), "slipway", "podffffffffffff", netip.MustParseAddr("10.128.2.99"),
		[]nat.Port{{HostPort: 9, ContainerPort: 9, Protocol: "tcp"}}, deviceExists))

	if got := b.reconcile(); got != 5 {
		t.Errorf("first reconcile: got %d changes; left %v", got, b.leftovers())
	}
	if got := b.reconcile(); got != 0 {
		t.Errorf("second reconcile: got %d changes", got)
	}
	if remaining := b.leftovers(); len(remaining) != 4 {
		t.Errorf("remaining: %v", remaining)
	}
	b.checkResponse(hosttest.Host(), "tcp4", "127.0.0.1:8080", "kept 10.128.2.1")
	b.checkResponse(namespace, "tcp4", keptAddress+":80", "kept "+keptAddress)
}

func TestReconcileRepairs(t *testing.T) {
	b := newBench(t)
	_, address := b.pod("one", ports(portMapping{HostPort: 8080, ContainerPort: 80}))
	b.checkResponse(hosttest.Host(), "tcp4", address+":80", "one 10.128.2.1")

	b.removeBridge()
	b.makeBridge()
	b.must(nat.Delete(t.Context(), nat.Table{Family: "ip", Name: "slipway"}))
	b.makeTable()
	if got := b.reconcile(); got != 2 {
		t.Errorf("got %d changes", got)
	}
	b.checkResponse(hosttest.Host(), "tcp4", address+":80", "one 10.128.2.1")
	b.checkResponse(hosttest.Host(), "tcp4", "127.0.0.1:8080", "one 10.128.2.1")
}

func TestIsPodDevice(t *testing.T) {
	for name, want := range map[string]bool{
		deviceName("c", "eth0"): true,
		"podman0":               false,
		"podzzzzzzzzzzzz":       false,
		"veth01234567":          false,
	} {
		attrs := netlink.NewLinkAttrs()
		attrs.Name = name
		if got := IsPodDevice(&netlink.Veth{LinkAttrs: attrs}); got != want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}
