package network

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	networkv1 "github.com/openshift/api/network/v1"
	networkclient "github.com/openshift/client-go/network/clientset/versioned"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/internal/dualstack"
)

// InForce reports whether the cluster uses the configured pod networks. It does not use them while
// the control plane is starting, or if the control plane rejects them.
func InForce(ctx context.Context, client networkclient.Interface, configured networkv1.ClusterNetwork) (bool, error) {
	current, err := client.NetworkV1().ClusterNetworks().Get(ctx, networkv1.ClusterNetworkDefault, metav1.GetOptions{})
	if err != nil {
		return false, wrap(err, "get ClusterNetwork %q", networkv1.ClusterNetworkDefault)
	}
	return equality.Semantic.DeepEqual(current.ClusterNetworks, configured.ClusterNetworks), nil
}

// rejection returns the reason why the configured networks cannot replace the current networks, or
// "". Hosts keep their subnets, so each subnet in a current network must also be in a configured
// network. If pods have IPv6 addresses, the subnet must also keep its number, from which these
// addresses are derived.
func (c *Controllers) rejection(current *networkv1.ClusterNetwork, hosts []*networkv1.HostSubnet) string {
	former := networksOf(current)
	var problems []string
	for _, host := range hosts {
		subnet, err := netip.ParsePrefix(host.Subnet)
		if err != nil {
			continue // the host gets a subnet later
		}
		if !isPart(subnet, c.DualStack) {
			if !isPart(subnet, former) {
				continue // the host is not a node
			}
			problems = append(problems, fmt.Sprintf("no network contains the subnet %s of host %q", subnet, host.Name))
			continue
		}
		before, after := former.Subnet(subnet), c.DualStack.Subnet(subnet)
		if before.IsValid() && after.IsValid() && before != after {
			problems = append(problems, fmt.Sprintf("the IPv6 subnet of host %q would change from %s to %s", host.Name, before, after))
		}
	}
	if len(problems) == 0 {
		return ""
	}
	slices.Sort(problems)
	return "rejected networkConfig.clusterNetworks of master-config.yaml: " + strings.Join(problems, "; ") +
		"; restore the networks on all masters, or remove the hosts first"
}

// isPart reports whether one of the IPv4 networks contains the subnet.
func isPart(subnet netip.Prefix, networks dualstack.Networks) bool {
	return slices.ContainsFunc(networks.IPv4, func(network dualstack.Network) bool {
		return network.Bits() <= subnet.Bits() && network.Contains(subnet.Addr())
	})
}

// networksOf returns the pod networks in a ClusterNetwork. It ignores invalid networks.
func networksOf(network *networkv1.ClusterNetwork) (networks dualstack.Networks) {
	for _, entry := range network.ClusterNetworks {
		prefix, err := netip.ParsePrefix(entry.CIDR)
		switch parsed := (dualstack.Network{Prefix: prefix, HostBits: int(entry.HostSubnetLength)}); {
		case err != nil || !parsed.Valid():
		case prefix.Addr().Is4():
			networks.IPv4 = append(networks.IPv4, parsed)
		default:
			networks.IPv6 = parsed
		}
	}
	return networks
}
