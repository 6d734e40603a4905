package policy

import (
	"net/netip"
	"slices"

	networkv1 "github.com/openshift/api/network/v1"

	"github.com/slipway-platform/slipway/network/cni"
	"github.com/slipway-platform/slipway/network/egressip"
)

// hostSet is the name of the set that contains the addresses from which hosts send packets to pods.
// It also contains the subnets of hosts that are not nodes.
const hostSet = "hosts"

// hostAddresses returns the content of hostSet. Users' objects do not affect its size, so the work
// for it does not count toward a user's budget.
func (s snapshot) hostAddresses() measuredSet {
	result := measuredSet{set: set{kind: s.family.Type(), interval: true, comment: "hosts of the cluster", elements: map[string]bool{}}}
	for _, host := range widest(slices.Clone(s.hosts)) {
		result.elements[host.String()] = true
	}
	return result
}

// hostAddresses returns each node's addresses, and the subnets of hosts that are not nodes. A node
// sends packets through VXLAN from its address in the pod network, and other packets from the
// address at which other hosts reach it.
func (o *objects) hostAddresses() (addresses []netip.Prefix) {
	var nodes, others []netip.Prefix
	add := func(host netip.Addr) { addresses = append(addresses, netip.PrefixFrom(host, host.BitLen())) }
	for _, object := range o.hostSubnets.GetStore().List() {
		host := object.(*networkv1.HostSubnet)
		subnet, err := netip.ParsePrefix(host.Subnet)
		switch {
		case err != nil || !subnet.Addr().Is4():
		case host.Annotations[networkv1.NodeUIDAnnotation] != "":
			nodes = append(nodes, subnet.Masked())
			for _, address := range egressip.HostAddresses(host) {
				// Skip addresses in the pod network: the pod with the address would have the rights
				// of a host.
				if !slices.ContainsFunc(o.podNetworks, func(n netip.Prefix) bool { return n.Contains(address) }) {
					add(address)
				}
			}
		default:
			others = append(others, subnet.Masked())
		}
	}
	for _, subnet := range nodes {
		add(cni.Gateway(subnet))
		if second := o.dualStack.Subnet(subnet); second.IsValid() {
			add(cni.Gateway(second))
		}
	}
	for _, subnet := range others {
		// An administrator can create any HostSubnet. A HostSubnet that contains a node's pods
		// would disable the isolation of these pods.
		if !slices.ContainsFunc(nodes, subnet.Overlaps) {
			addresses = append(addresses, subnet)
		}
	}
	return addresses
}
