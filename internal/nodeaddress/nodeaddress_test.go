package nodeaddress

import (
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestInternal(t *testing.T) {
	node := &corev1.Node{}
	if address := Internal(node, netip.Addr.Is4); address.IsValid() {
		t.Errorf("a Node without addresses has the address %s", address)
	}
	node.Status.Addresses = []corev1.NodeAddress{
		{Type: corev1.NodeExternalIP, Address: "192.0.2.1"}, {Type: corev1.NodeInternalIP, Address: "invalid"},
		{Type: corev1.NodeInternalIP, Address: "fd00::5"}, {Type: corev1.NodeInternalIP, Address: "192.0.2.5"},
		{Type: corev1.NodeInternalIP, Address: "192.0.2.6"},
	}
	if address := Internal(node, netip.Addr.Is4).String(); address != "192.0.2.5" {
		t.Errorf("the IPv4 address is %s", address)
	}
	if address := Internal(node, netip.Addr.Is6).String(); address != "fd00::5" {
		t.Errorf("the IPv6 address is %s", address)
	}
}
