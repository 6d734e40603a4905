package policy

import (
	"net/netip"
	"slices"

	networkv1 "github.com/openshift/api/network/v1"

	"github.com/slipway-platform/slipway/network/cni"
	"github.com/slipway-platform/slipway/network/egressip"
	"github.com/slipway-platform/slipway/network/ipfamily"
)

// gatewaySet contains the nodes' addresses that only the cluster uses, such as the gateways of
// their pods in the pod network. At these addresses, a pod can reach the same ports as at a node's
// other addresses. The ports include node ports, through which a pod on another node can reach any
// external address. Therefore, firewalls apply to these addresses, although the gateways are in the
// pod network.
const gatewaySet = "gateways"

// gateways maps the nodes' addresses that only the cluster uses to the nodes' other addresses. node
// is the name of this node.
func (o *objects) gateways(node string) map[netip.Addr][]netip.Addr {
	gateways := map[netip.Addr][]netip.Addr{}
	for _, object := range o.hostSubnets.GetStore().List() {
		host := object.(*networkv1.HostSubnet)
		subnet, err := netip.ParsePrefix(host.Subnet)
		if err != nil || !subnet.Addr().Is4() || host.Annotations[networkv1.NodeUIDAnnotation] == "" {
			continue
		}
		own := []netip.Addr{cni.Gateway(subnet.Masked())}
		if second := o.dualStack.Subnet(subnet.Masked()); second.IsValid() {
			own = append(own, cni.Gateway(second))
		}
		if host.Name == node && o.resolver.IsValid() {
			own = append(own, o.resolver)
		}
		for _, gateway := range own {
			gateways[gateway] = egressip.HostAddresses(host)
		}
	}
	return gateways
}

// gatewaysIn returns the gateways in an IP family, with their nodes' other addresses in this
// family.
func gatewaysIn(f ipfamily.Family, gateways map[netip.Addr][]netip.Addr) map[netip.Addr][]netip.Addr {
	result := map[netip.Addr][]netip.Addr{}
	for gateway, addresses := range gateways {
		if ipfamily.Of(gateway) == f {
			result[gateway] = inFamily(f, addresses)
		}
	}
	return result
}

// addGateways adds the set of gateways.
func (c *compiler) addGateways() {
	elements := map[string]bool{}
	for gateway := range c.gateways {
		elements[gateway.String()] = true
	}
	c.result.sets[gatewaySet] = set{kind: c.family.Type(), elements: elements}
}

// withGateways adds the gateways of nodes that have another address in the networks. As a result, a
// firewall rule that names a node applies to all of the node's addresses.
func (c *compiler) withGateways(networks []netip.Prefix) []netip.Prefix {
	result := slices.Clone(networks)
	for gateway, addresses := range c.gateways {
		isNamed := slices.ContainsFunc(addresses, func(address netip.Addr) bool {
			return slices.ContainsFunc(networks, func(n netip.Prefix) bool { return n.Contains(address) })
		})
		if isNamed {
			result = append(result, netip.PrefixFrom(gateway, gateway.BitLen()))
		}
	}
	return result
}
