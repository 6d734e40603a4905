package agent

import (
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"strings"
	"testing"

	networkv1 "github.com/openshift/api/network/v1"
	networkfake "github.com/openshift/client-go/network/clientset/versioned/fake"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"

	"github.com/slipway-platform/slipway/internal/eventually"
	"github.com/slipway-platform/slipway/network/internal/hosttest"
	"github.com/slipway-platform/slipway/network/vxlan"
)

const vxlanDevice = "vxlan_sys_4789"

// newTunnelAgent returns an agent on a host with a segment and a default route.
func newTunnelAgent(t *testing.T, transport string) *Agent {
	t.Helper()
	output(t, "ip", "link", "add", "uplink0", "mtu", "1400", "type", "bridge")
	t.Cleanup(func() { output(t, "ip", "link", "delete", "uplink0") })
	output(t, "ip", "address", "add", "192.0.2.1/24", "dev", "uplink0")
	output(t, "ip", "link", "set", "uplink0", "up")
	output(t, "ip", "route", "add", "default", "via", "192.0.2.254")
	network := networkfake.NewClientset(&networkv1.ClusterNetwork{ObjectMeta: metav1.ObjectMeta{Name: networkv1.ClusterNetworkDefault}})
	// The fake client sends no bookmark after the initial objects of a watch, so reflectors must
	// list.
	network.PrependWatchReactor("*", func(action clienttesting.Action) (bool, watch.Interface, error) {
		if action.(clienttesting.WatchActionImpl).ListOptions.SendInitialEvents != nil {
			return true, nil, apierrors.NewBadRequest("no initial events")
		}
		return false, nil, nil
	})
	own := node("10.128.0.0/23")
	own.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.0.2.1"}}
	a := newAgent(t, own)
	a.Network, a.Transport, a.VXLANDevice, a.Tunnel = network, transport, vxlanDevice, &vxlan.Tunnel{}
	a.Tunnel.Follow(func() (vxlan.Networks, error) { return vxlan.Networks{}, nil }, func() {})
	return a
}

// paths returns the sorted routes to other hosts, with their devices.
func paths(t *testing.T) string {
	t.Helper()
	var lines []string
	for line := range strings.Lines(output(t, "ip", "-4", "route", "show", "proto", "83")) {
		lines = append(lines, strings.TrimSpace(strings.ReplaceAll(strings.TrimSuffix(strings.TrimSpace(line), "onlink"), " scope link", "")))
	}
	return strings.Join(lines, "\n")
}

// vxlanDetails returns the port and the MTU of the VXLAN device.
func vxlanDetails(t *testing.T) string {
	t.Helper()
	link, err := net.InterfaceByName(vxlanDevice)
	if err != nil {
		return "none"
	}
	text, err := exec.Command("ip", "-d", "link", "show", vxlanDevice).Output()
	if err != nil {
		return "none" // the agent is replacing the device
	}
	details := strings.Fields(string(text))
	port := ""
	for i, word := range details {
		if word == "dstport" {
			port = details[i+1]
		}
	}
	if link.MTU != 1350 {
		return fmt.Sprintf("port %s, MTU %d", port, link.MTU)
	}
	return "port " + port
}

func TestTransportsReachOtherHosts(t *testing.T) {
	near := otherHost("near", "10.130.0.0/23", "192.0.2.2")
	far := otherHost("far", "10.131.0.0/23", "198.51.100.2")
	direct, tunneled := "10.130.0.0/23 via 192.0.2.2 dev uplink0", "10.131.0.0/23 via 10.131.0.1 dev "+vxlanDevice
	for transport, want := range map[string]struct{ routes, device, mtu string }{
		TransportAuto:        {direct + "\n" + tunneled, "port 4789", "1350"},
		TransportVXLAN:       {"10.130.0.0/23 via 10.130.0.1 dev " + vxlanDevice + "\n" + tunneled, "port 4789", "1350"},
		TransportHostGateway: {direct, "none", "1400"},
	} {
		t.Run(transport, func(t *testing.T) {
			a := newTunnelAgent(t, transport)
			serve(t, a)
			if got := vxlanDetails(t); got != "none" {
				t.Errorf("without other hosts, there is a VXLAN device: %s", got)
			}
			for _, host := range []*corev1.Node{near, far} {
				if _, err := a.Client.CoreV1().Nodes().Create(t.Context(), host, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			eventually.Equal(t, "routes", func() string { return paths(t) }, want.routes)
			eventually.Equal(t, "VXLAN device", func() string { return vxlanDetails(t) }, want.device)
			if filters := output(t, "tc", "filter", "show", "dev", "uplink0", "ingress"); strings.Contains(filters, "slipway") != (transport != TransportVXLAN) {
				t.Errorf("programs of the network segment:\n%s", filters)
			}
			if link := output(t, "ip", "link", "show", "slipway0"); !strings.Contains(link, "mtu "+want.mtu) {
				t.Errorf("MTU of pods, want %s: %s", want.mtu, link)
			}
			rules := output(t, "nft", "list", "table", "ip", "slipway")
			if guarded := strings.Contains(rules, `udp dport 4789 iifname "slipway0" counter`); guarded != (transport != TransportHostGateway) {
				t.Errorf("rules about the VXLAN port:\n%s", rules)
			}
		})
	}
}

func TestMTUOfNodeConfigIsUsed(t *testing.T) {
	a := newTunnelAgent(t, TransportAuto)
	a.MTU = 1300
	if _, err := a.Client.CoreV1().Nodes().Create(t.Context(), otherHost("far", "10.131.0.0/23", "198.51.100.2"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	serve(t, a)
	for _, device := range []string{"slipway0", vxlanDevice} {
		eventually.Equal(t, "MTU of "+device, func() int {
			link, err := net.InterfaceByName(device)
			if err != nil {
				return 0
			}
			return link.MTU
		}, 1300)
	}
}

// TestPacketsOfPodsAreAcceptedOnlyInVXLAN sends a packet from a machine on the segment. The
// packet's source address is the address of a pod on another host.
func TestPacketsOfPodsAreAcceptedOnlyInVXLAN(t *testing.T) {
	for transport, want := range map[string]bool{TransportAuto: true, TransportVXLAN: false} {
		t.Run(transport, func(t *testing.T) {
			a := newTunnelAgent(t, transport)
			machine := hosttest.NewNamespace(t, "machine")
			machine.Connect(t, "192.0.3.1/24", "192.0.3.2/24")
			output(t, "ip", "-n", "machine", "address", "add", "10.130.0.5/32", "dev", "eth0")
			device, err := net.InterfaceByName("to-machine")
			if err != nil {
				t.Fatal(err)
			}
			output(t, "ip", "-n", "machine", "neighbor", "replace", "192.0.3.1", "lladdr", device.HardwareAddr.String(), "dev", "eth0")
			output(t, "ip", "-n", "machine", "route", "replace", "default", "via", "192.0.3.1", "src", "10.130.0.5")
			if _, err := a.Client.CoreV1().Nodes().Create(t.Context(), otherHost("near", "10.130.0.0/23", "192.0.3.2"), metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			serve(t, a)
			hosttest.Host().Serve(t, 80)
			if !want {
				if response, err := machine.Ask("tcp4", "192.0.2.1:80"); err == nil {
					t.Errorf("the response is %q", response)
				}
				return
			}
			eventually.Equal(t, "response", func() string {
				response, _ := machine.Ask("tcp4", "192.0.2.1:80") // empty if there is no response
				return response
			}, "host 10.130.0.5")
		})
	}
}

func TestVXLANDeviceIsRepairedAndRemoved(t *testing.T) {
	a := newTunnelAgent(t, TransportAuto)
	const route = "10.131.0.0/23 via 10.131.0.1 dev " + vxlanDevice
	nodes := a.Client.CoreV1().Nodes()
	if _, err := nodes.Create(t.Context(), otherHost("far", "10.131.0.0/23", "198.51.100.2"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	agent := serve(t, a)
	eventually.Equal(t, "route", func() string { return paths(t) }, route)
	output(t, "ip", "link", "delete", vxlanDevice)
	eventually.Equal(t, "route after the removal of the device", func() string { return paths(t) }, route)
	output(t, "ip", "address", "flush", "dev", vxlanDevice)
	eventually.Equal(t, "address of the device", func() string { return addresses(vxlanDevice) }, "10.128.0.1/32")
	eventually.Equal(t, "route after the removal of the address", func() string { return paths(t) }, route)

	networks := a.Network.NetworkV1().ClusterNetworks()
	network, err := networks.Get(t.Context(), networkv1.ClusterNetworkDefault, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	port := uint32(4790)
	network.VXLANPort = &port
	if _, err := networks.Update(t.Context(), network, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually.Equal(t, "device with another port", func() string { return vxlanDetails(t) }, "port 4790")
	eventually.Equal(t, "route after the change of the port", func() string { return paths(t) }, route)

	if err := nodes.Delete(t.Context(), "far", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually.Equal(t, "device without other hosts", func() string { return vxlanDetails(t) }, "none")
	agent.Stop()
}

func TestHostSubnetsOfOtherHostsAreConnected(t *testing.T) {
	a := newTunnelAgent(t, TransportAuto)
	serve(t, a)
	for name, host := range map[string]networkv1.HostSubnet{
		"appliance": {Subnet: "10.131.0.0/23", HostIP: "192.0.2.9"},
		"node":      {Subnet: "10.130.0.0/23", HostIP: "192.0.2.8", ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{networkv1.NodeUIDAnnotation: "x"}}},
		"stranger":  {Subnet: "198.51.100.0/24", HostIP: "192.0.2.7"},
		"greedy":    {Subnet: "10.128.0.0/14", HostIP: "192.0.2.6"},
		"thief":     {Subnet: "10.128.0.0/24", HostIP: "192.0.2.5"},
		"inside":    {Subnet: "10.129.0.0/23", HostIP: "10.128.0.7"},
	} {
		host.Name, host.Host = name, name
		if _, err := a.Network.NetworkV1().HostSubnets().Create(t.Context(), &host, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	eventually.Equal(t, "routes", func() string { return paths(t) }, "10.131.0.0/23 dev "+vxlanDevice)
	if err := a.Network.NetworkV1().HostSubnets().Delete(t.Context(), "appliance", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually.Equal(t, "routes after the deletion", func() string { return paths(t) }, "")
}

func TestFixedNetworkIDOfAHost(t *testing.T) {
	a := &Agent{DualStack: singleNetwork()}
	address := netip.MustParseAddr("192.0.2.9")
	for text, want := range map[string]vxlan.Peer{
		"0":        {Address: address, External: true, FixedVNI: true},
		"16777215": {Address: address, External: true, FixedVNI: true, VNI: 1<<24 - 1},
		"16777216": {}, "-1": {}, "zero": {}, "": {},
	} {
		host := &networkv1.HostSubnet{Subnet: "10.131.0.0/23", HostIP: address.String()}
		host.Annotations = map[string]string{networkv1.FixedVNIDHostAnnotation: text}
		if got := a.externalPeerOf(host); got.Peer != want {
			t.Errorf("annotation %q: %+v, want %+v", text, got.Peer, want)
		}
	}
}
