package agent

import (
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/internal/dualstack"
	"github.com/slipway-platform/slipway/internal/eventually"
)

var testNetworks = dualstack.Networks{
	IPv4: singleNetwork().IPv4, IPv6: dualstack.Network{Prefix: netip.MustParsePrefix("fd01::/48"), HostBits: 64},
}

// secondAddresses returns the bridge's IPv6 addresses.
func secondAddresses(t *testing.T) string {
	t.Helper()
	var list []string
	for line := range strings.Lines(output(t, "ip", "-6", "-o", "address", "show", "dev", "slipway0")) {
		list = append(list, strings.Fields(line)[3])
	}
	return strings.Join(list, " ")
}

// TestOnlyAddressesOfPodsAreNeighbors sends packets to addresses that are in the node's subnet but
// that no pod can have. The host must not send neighbor solicitations for these addresses.
func TestOnlyAddressesOfPodsAreNeighbors(t *testing.T) {
	a := newAgent(t, node("10.128.2.0/23"))
	a.DualStack = testNetworks
	agent := serve(t, a)
	if got := secondAddresses(t); got != "fd01:0:0:1::1/119" {
		t.Errorf("the bridge has the addresses %s", got)
	}
	dial := func(address string) error {
		conn, err := net.Dial("udp", net.JoinHostPort(address, "9"))
		if err == nil {
			conn.Close()
		}
		return err
	}
	if err := dial("fd01:0:0:1::1ff"); err != nil {
		t.Errorf("an address that a pod can have: %v", err)
	}
	for _, address := range []string{"fd01:0:0:1::200", "fd01:0:0:1:8000::1"} {
		if err := dial(address); !errors.Is(err, unix.EHOSTUNREACH) {
			t.Errorf("%s, which no pod can have: %v", address, err)
		}
	}
	output(t, "ip", "-6", "route", "delete", "unreachable", "fd01:0:0:1::/64")
	eventually.True(t, "repaired route", func() bool { return errors.Is(dial("fd01:0:0:1::200"), unix.EHOSTUNREACH) })
	agent.Stop()
}

// TestSubnetWithoutCounterpartHasOnlyIPv4 starts an agent on a node whose IPv4 subnet has no
// corresponding IPv6 subnet.
func TestSubnetWithoutCounterpartHasOnlyIPv4(t *testing.T) {
	a := newAgent(t, node("10.128.4.0/24"))
	a.DualStack = testNetworks
	serve(t, a)
	if got := addresses("slipway0") + " and " + secondAddresses(t); got != "10.128.4.1/24 and " {
		t.Errorf("the bridge has the addresses %s", got)
	}
}

// TestTransportOfIPv6Changes starts a host's agent with one transport, and then with another
// transport.
func TestTransportOfIPv6Changes(t *testing.T) {
	a := newTunnelAgent(t, TransportAuto)
	a.DualStack = testNetworks
	output(t, "ip", "-6", "address", "add", "fd00::1/64", "dev", "uplink0", "nodad")
	other := otherHost("second", "10.128.2.0/23", "192.0.2.2")
	other.Status.Addresses = append(other.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: "fd00::2"})
	if _, err := a.Client.CoreV1().Nodes().Create(t.Context(), other, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	route := func() string {
		fields := strings.Fields(output(t, "ip", "-6", "route", "show", "fd01:0:0:1::/64"))
		return strings.Join(fields[:min(5, len(fields))], " ")
	}
	agent := serve(t, a)
	eventually.Equal(t, "direct route", route, "fd01:0:0:1::/64 via fd00::2 dev uplink0")
	agent.Stop()
	a.Transport = TransportVXLAN
	agent = serve(t, a)
	eventually.Equal(t, "route in VXLAN", route, "fd01:0:0:1::/64 via fd01:0:0:1::1 dev "+vxlanDevice)
	agent.Stop()
	a.Transport = TransportHostGateway
	serve(t, a)
	eventually.Equal(t, "direct route again", route, "fd01:0:0:1::/64 via fd00::2 dev uplink0")
}

func TestMTUTooSmallForIPv6IsRejected(t *testing.T) {
	a := newTunnelAgent(t, TransportAuto)
	a.DualStack = testNetworks
	output(t, "ip", "link", "set", "uplink0", "mtu", "1300")
	err := a.Run(t.Context(), func() { t.Error("ready") })
	if err == nil || !strings.Contains(err.Error(), "the MTU of pods is 1250") || !strings.Contains(err.Error(), "at least 1280") {
		t.Errorf("got %v", err)
	}
}

// singleNetwork returns the pod networks of a cluster with one IPv4 network.
func singleNetwork() dualstack.Networks {
	return dualstack.Networks{IPv4: []dualstack.Network{{Prefix: netip.MustParsePrefix("10.128.0.0/14"), HostBits: 9}}}
}

// TestNodeOutsideOfNetworksIsRejected starts an agent whose configuration does not contain the
// network of the node's subnet anymore.
func TestNodeOutsideOfNetworksIsRejected(t *testing.T) {
	a := newAgent(t, node("10.64.2.0/24"))
	err := a.Run(t.Context(), func() { t.Error("ready") })
	if err == nil || !strings.Contains(err.Error(), "contains the subnet 10.64.2.0/24 of this node; restore the network") {
		t.Errorf("got %v", err)
	}
	if got := addresses("slipway0"); got != "" {
		t.Errorf("the bridge has the addresses %s", got)
	}
}
