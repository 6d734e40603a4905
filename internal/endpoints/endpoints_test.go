package endpoints

import (
	"net/netip"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestEndpointsOfUsersCannotReachHost(t *testing.T) {
	const host = "198.51.100.10"
	pods := map[string]string{discoveryv1.LabelManagedBy: "endpointslice-controller.k8s.io"}
	mirrored := map[string]string{discoveryv1.LabelManagedBy: mirror}
	for name, c := range map[string]struct {
		namespace, address string
		labels             map[string]string
		ok                 bool
	}{
		"a pod": {"shop", "10.128.0.5", pods, true}, "another machine": {"shop", "203.0.113.5", mirrored, true},
		"the host": {"shop", host, mirrored, false}, "the host as a mapped IPv6 address": {"shop", "::ffff:" + host, mirrored, false}, "the host, in a slice": {"shop", host, nil, true},
		"a pod on the host's network": {"shop", host, pods, true}, "the registry": {"default", host, mirrored, true}, "a name that resembles the platform's": {"kubeshop", host, mirrored, false},
		"loopback": {"default", "127.0.0.1", mirrored, false}, "loopback, mapped": {"shop", "::ffff:127.0.0.1", mirrored, false}, "loopback of IPv6": {"shop", "::1", mirrored, false},
		"metadata": {"shop", "169.254.169.254", mirrored, false}, "link-local": {"shop", "fe80::1", mirrored, false}, "unspecified": {"shop", "0.0.0.0", mirrored, false},
		"multicast": {"shop", "224.0.0.1", mirrored, false},
	} {
		slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Labels: c.labels}}
		isHost := func(address netip.Addr) bool { return address.String() == host }
		if got := Reachable(slice, netip.MustParseAddr(c.address), isHost); got != c.ok {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestAddressesOfThisMachine(t *testing.T) {
	for text, want := range map[string]bool{"127.0.0.1": true, "203.0.113.5": false} {
		if got := OfHost(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s: %t", text, got)
		}
	}
}
