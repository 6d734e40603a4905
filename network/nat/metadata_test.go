package nat

import (
	"net/netip"
	"testing"

	"github.com/slipway-platform/slipway/network/internal/hosttest"
)

// TestPodsReachOnlyDNSOfMetadataServices connects a pod to machines that have the addresses of
// metadata services. The pod's device takes the place of the bridge.
func TestPodsReachOnlyDNSOfMetadataServices(t *testing.T) {
	hosttest.Run(t, "sysctl -w net.ipv4.ip_forward=1")
	pod := hosttest.NewNamespace(t, "pod")
	pod.Connect(t, "10.128.0.1/24", "10.128.0.2/24")
	pod.Serve(t, 80)
	if err := Ensure(t.Context(), Network{Table: "test-nat", Bridge: "to-pod", Pods: []netip.Prefix{netip.MustParsePrefix("10.128.0.0/14")}}); err != nil {
		t.Fatal(err)
	}
	for name, machine := range map[string]struct {
		host, address string
		metadata      bool
	}{
		"link-local": {"169.254.1.1/16", "169.254.169.254", true},
		"azure":      {"168.63.129.1/16", "168.63.129.16", true},
		"internet":   {"203.0.113.2/16", "203.0.113.1", false},
	} {
		n := hosttest.NewNamespace(t, name)
		n.Connect(t, machine.host, machine.address+"/16")
		n.Serve(t, 53)
		n.Serve(t, 80)
		for _, network := range []string{"tcp4", "udp4"} {
			if _, err := pod.Ask(network, machine.address+":53"); err != nil {
				t.Errorf("%s: the pod does not reach %s port 53: %v", name, network, err)
			}
			if _, err := pod.Ask(network, machine.address+":80"); (err == nil) == machine.metadata {
				t.Errorf("%s: the pod connects to %s port 80: got error %v", name, network, err)
			}
		}
		// A cloud's load balancers can check pods from the address of its metadata service.
		if response, err := n.Ask("tcp4", "10.128.0.2:80"); err != nil || response != "pod "+machine.address {
			t.Errorf("%s: the pod responds with %q, %v", name, response, err)
		}
	}
}
