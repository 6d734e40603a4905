package agent

import (
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/internal/dualstack"
	"github.com/slipway-platform/slipway/internal/eventually"
)

// otherHost returns the Node of another host.
func otherHost(name, subnet, address string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{PodCIDR: subnet},
		Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}}},
	}
}

// routes returns the sorted routes to other hosts.
func routes(t *testing.T) string {
	t.Helper()
	var lines []string
	for line := range strings.Lines(output(t, "ip", "-4", "route", "show", "proto", "83")) {
		lines = append(lines, strings.Join(strings.Fields(line)[:3], " "))
	}
	return strings.Join(lines, ", ")
}

// TestRoutesLeadToAllPodNetworks checks routes to hosts with subnets of two networks.
func TestRoutesLeadToAllPodNetworks(t *testing.T) {
	output(t, "ip", "link", "add", "uplink0", "type", "bridge")
	t.Cleanup(func() { output(t, "ip", "link", "delete", "uplink0") })
	output(t, "ip", "address", "add", "192.0.2.1/24", "dev", "uplink0")
	output(t, "ip", "link", "set", "uplink0", "up")
	a := newAgent(t, node("10.64.0.0/24"))
	a.DualStack.IPv4 = append(a.DualStack.IPv4, dualstack.Network{Prefix: netip.MustParsePrefix("10.64.0.0/16"), HostBits: 8},
		dualstack.Network{Prefix: netip.MustParsePrefix("10.66.0.0/24"), HostBits: 8}) // one subnet
	agent := serve(t, a)
	for _, other := range []*corev1.Node{
		otherHost("first", "10.128.0.0/23", "192.0.2.2"), otherHost("second", "10.64.1.0/24", "192.0.2.3"),
		otherHost("third", "10.66.0.0/24", "192.0.2.4"), otherHost("stranger", "10.65.0.0/24", "192.0.2.5"),
		otherHost("greedy", "10.64.0.0/16", "192.0.2.6"),
	} {
		if _, err := a.Client.CoreV1().Nodes().Create(t.Context(), other, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	eventually.Equal(t, "routes", func() string { return routes(t) }, "10.64.1.0/24 via 192.0.2.3, 10.66.0.0/24 via 192.0.2.4, 10.128.0.0/23 via 192.0.2.2")
	table := output(t, "nft", "list", "table", "ip", "slipway")
	if !strings.Contains(table, "10.64.0.0/16, 10.66.0.0/24") {
		t.Errorf("packets between the networks have other source addresses:\n%s", table)
	}
	agent.Stop()
}

func TestRoutesFollowNodes(t *testing.T) {
	output(t, "ip", "link", "add", "uplink0", "type", "bridge")
	t.Cleanup(func() { output(t, "ip", "link", "delete", "uplink0") })
	output(t, "ip", "address", "add", "192.0.2.1/24", "dev", "uplink0")
	output(t, "ip", "link", "set", "uplink0", "up")
	a := newAgent(t, node("10.128.0.0/23"))
	nodes := a.Client.CoreV1().Nodes()
	imitator := otherHost("imitator", "10.129.0.0/23", "192.0.2.1") // has an address of this host
	if _, err := nodes.Create(t.Context(), imitator, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	agent := serve(t, a)
	for _, other := range []*corev1.Node{
		otherHost("second", "10.130.0.0/23", "192.0.2.2"),
		otherHost("distant", "10.131.0.0/23", "198.51.100.2"), // not on a segment of this host
		otherHost("thief", "10.128.0.0/24", "192.0.2.4"),      // a part of this host's subnet
		otherHost("stranger", "198.51.100.0/24", "192.0.2.5"), // outside the pod network
		otherHost("greedy", "10.128.0.0/14", "192.0.2.6"),     // the whole pod network
	} {
		if _, err := nodes.Create(t.Context(), other, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	eventually.Equal(t, "route to the new host", func() string { return routes(t) }, "10.130.0.0/23 via 192.0.2.2")
	if _, err := nodes.UpdateStatus(t.Context(), otherHost("second", "10.130.0.0/23", "192.0.2.3"), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually.Equal(t, "route to the new address", func() string { return routes(t) }, "10.130.0.0/23 via 192.0.2.3")
	output(t, "ip", "route", "delete", "10.130.0.0/23")
	eventually.Equal(t, "repaired route", func() string { return routes(t) }, "10.130.0.0/23 via 192.0.2.3")
	if err := nodes.Delete(t.Context(), "second", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually.Equal(t, "no route to the removed host", func() string { return routes(t) }, "")
	agent.Stop()
}
