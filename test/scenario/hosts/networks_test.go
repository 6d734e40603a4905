package hosts

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// These are the pod networks. The first network has only one subnet, so the other hosts get subnets
// of the second network. Therefore, all tests in the package use both networks.
const (
	firstNetwork, secondNetwork = "10.128.0.0/23", "10.64.0.0/16"

	podNetworks = `networkConfig:
  clusterNetworks: [{cidr: ` + firstNetwork + `, hostSubnetLength: 9}, {cidr: ` + secondNetwork + `, hostSubnetLength: 8}]`
)

func TestSecondHostGetsSubnetOfSecondNetwork(t *testing.T) {
	c, host := newServers(t)
	for pod, network := range map[string]string{"near": firstNetwork, "far": secondNetwork} {
		if address := c.Pod(pod).Status.PodIP; !netip.MustParsePrefix(network).Contains(netip.MustParseAddr(address)) {
			t.Errorf("pod %s has the address %s, which is not in %s", pod, address, network)
		}
	}
	if list := c.OC("get", "clusternetworks"); !strings.Contains(list, firstNetwork+":9, "+secondNetwork+":8") {
		t.Errorf("oc get clusternetworks:\n%s", list)
	}
	subnet := strings.TrimSpace(c.OC("get", "hostsubnet", second, "-o", "jsonpath={.subnet}"))
	if prefix, err := netip.ParsePrefix(subnet); err != nil || prefix.Bits() != 24 || !strings.HasPrefix(subnet, "10.64.") {
		t.Errorf("the second host has the subnet %q", subnet)
	}
	// Create a policy that accepts only the client's network.
	c.Apply(`
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: second-network}
spec:
  podSelector: {matchLabels: {app: near}}
  ingress: [{from: [{ipBlock: {cidr: ` + secondNetwork + `}}]}]
`)
	c.WaitFetch("far", fmt.Sprintf("http://%s:8080/", c.Pod("near").Status.PodIP), "I am near")

	for host, peer := range map[*kit.Host]string{c: second, host: c.NodeName()} {
		c.WaitFor("network status that contains "+peer, func(context.Context) error {
			result := host.Slipway("status", "--network")
			for _, want := range []string{firstNetwork + ":9, " + secondNetwork + ":8", "HOST", peer} {
				if result.Code != 0 || !strings.Contains(result.Stdout, want) {
					return fmt.Errorf("exit code %d, want %q in\n%s%s", result.Code, want, result.Stdout, result.Stderr)
				}
			}
			return nil
		})
	}
}
