package agent

import (
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"strconv"

	"github.com/containernetworking/plugins/pkg/netlinksafe"
	networkv1 "github.com/openshift/api/network/v1"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/slipway-platform/slipway/internal/dualstack"
	"github.com/slipway-platform/slipway/internal/nodeaddress"
	"github.com/slipway-platform/slipway/network/cni"
	"github.com/slipway-platform/slipway/network/ipfamily"
	"github.com/slipway-platform/slipway/network/vxlan"
)

// cluster contains the caches of the objects that describe the cluster's hosts.
type cluster struct {
	nodes   cache.Store
	objects *networkObjects
}

// peer describes another host: the IPv4 subnet of its pods, their IPv6 subnet, if any, and the
// host's address.
type peer struct {
	subnet, second netip.Prefix
	vxlan.Peer
}

// peerOf returns the peer for a node. The peer is empty for this node, and for a node that has no
// address or no subnet in the pod network.
func (a *Agent) peerOf(object any) peer {
	node, ok := object.(*corev1.Node)
	if !ok || node.Name == a.NodeName {
		return peer{}
	}
	subnet, ok := subnetOf(node)
	if !ok || !a.isPart(subnet) {
		return peer{}
	}
	address := addressOf(node, ipfamily.IPv4)
	if !address.IsValid() || subnet.Contains(address) {
		return peer{}
	}
	result := peer{subnet, a.DualStack.Subnet(subnet), vxlan.Peer{Address: address}}
	if result.second.IsValid() {
		result.SecondAddress, result.Gateway = addressOf(node, ipfamily.IPv6), cni.Gateway(subnet)
	}
	return result
}

// externalPeerOf returns the peer for a HostSubnet that does not belong to a node.
func (a *Agent) externalPeerOf(host *networkv1.HostSubnet) peer {
	subnet, err := netip.ParsePrefix(host.Subnet)
	address, addressErr := netip.ParseAddr(host.HostIP)
	if err != nil || addressErr != nil || !address.Is4() || !a.isPart(subnet) || a.isPod(address) {
		return peer{}
	}
	result := peer{subnet: subnet.Masked(), Peer: vxlan.Peer{Address: address, External: true}}
	if text, fixed := host.Annotations[networkv1.FixedVNIDHostAnnotation]; fixed {
		vni, err := strconv.ParseUint(text, 10, 24)
		if err != nil {
			slog.Warn("ignored HostSubnet with an invalid network ID", "object", host.Name, "error", err)
			return peer{}
		}
		result.FixedVNI, result.VNI = true, uint32(vni)
	}
	return result
}

// isPart reports whether an IPv4 subnet is part of a pod network. An entire pod network is a part
// only if it consists of a single subnet.
func (a *Agent) isPart(subnet netip.Prefix) bool {
	return slices.ContainsFunc(a.DualStack.IPv4, func(network dualstack.Network) bool {
		return network.Contains(subnet.Addr()) && subnet.Bits() >= min(network.Bits()+1, subnet.Addr().BitLen()-network.HostBits)
	})
}

// isPod reports whether an address is in a pod network.
func (a *Agent) isPod(address netip.Addr) bool {
	return slices.ContainsFunc(a.DualStack.Prefixes(), func(pods netip.Prefix) bool { return pods.Contains(address) })
}

// addressOf returns a node's address in an IP family. The address is invalid if the kubelet has not
// reported one.
func addressOf(node *corev1.Node, family ipfamily.Family) netip.Addr {
	return nodeaddress.Internal(node, func(address netip.Addr) bool { return ipfamily.Of(address) == family })
}

// peers returns the other hosts, keyed by subnet. It omits a host whose subnet overlaps this host's
// subnet.
func (a *Agent) peers(own netip.Prefix, cluster *cluster) map[netip.Prefix]vxlan.Peer {
	peers := map[netip.Prefix]vxlan.Peer{}
	if a.usesVXLAN() {
		for _, host := range cluster.objects.externalHosts() {
			if p := a.externalPeerOf(host); p.subnet.IsValid() && !p.subnet.Overlaps(own) {
				peers[p.subnet] = p.Peer
			}
		}
	}
	for _, node := range cluster.nodes.List() {
		if p := a.peerOf(node); p.subnet.IsValid() && !p.subnet.Overlaps(own) {
			peers[p.subnet] = p.Peer
			if p.second.IsValid() {
				peers[p.second] = p.Peer
			}
		}
	}
	return peers
}

// connectHosts makes the VXLAN device and the routes match the hosts of the cluster. It logs hosts
// that it cannot connect, because a problem with one host must not disconnect the other hosts.
func (a *Agent) connectHosts(own netip.Prefix, cluster *cluster) {
	peers := a.peers(own, cluster)
	for subnet, peer := range peers {
		if _, index, isDirect := directPath(subnet, peer); isDirect && a.prefersRoute(peer) {
			peer.Routed, peer.Device = true, index
		}
		peers[subnet] = peer
	}
	device, err := a.ensureTunnel(own, peers, cluster)
	if err != nil {
		slog.Error("cannot set up VXLAN or direct connections to other hosts", "error", err)
	}
	routes := map[netip.Prefix]netlink.Route{}
	for subnet, peer := range peers {
		if route, exists := a.route(subnet, peer, device); exists {
			routes[subnet] = route
		}
	}
	if second := a.DualStack.Subnet(own); second.IsValid() && second.Bits() < podBits(second, own) {
		routes[second] = unreachable()
	}
	if err := ensureRoutes(routes); err != nil {
		slog.Error("cannot set routes to other hosts", "error", err)
	}
}

// route returns the route to a host's subnet. exists is false if the host is not reachable, or if
// its address is an address of this host. device is the VXLAN device, or nil.
func (a *Agent) route(subnet netip.Prefix, peer vxlan.Peer, device netlink.Link) (route netlink.Route, exists bool) {
	paths, err := netlink.RouteGet(peer.Address.AsSlice())
	gateway, index, isDirect := directPath(subnet, peer)
	switch {
	case err != nil || len(paths) == 0 || paths[0].Type != unix.RTN_UNICAST:
		slog.Warn("pods of another host are not reachable: no route to its address", "address", peer.Address, "podCIDR", subnet, "error", err)
	case isDirect && a.prefersRoute(peer):
		return netlink.Route{Gw: gateway.AsSlice(), LinkIndex: index}, true
	case device == nil:
		slog.Warn("pods of another host are not reachable: it is not on a network segment of this host, and VXLAN is not in use", "address", peer.Address, "podCIDR", subnet)
	case peer.External:
		return netlink.Route{LinkIndex: device.Attrs().Index, Scope: netlink.SCOPE_LINK}, true
	default:
		return netlink.Route{Gw: cni.Gateway(subnet).AsSlice(), LinkIndex: device.Attrs().Index, Flags: int(netlink.FLAG_ONLINK)}, true
	}
	return netlink.Route{}, false
}

// prefersRoute reports whether packets to a host are sent directly if both hosts share a network
// segment.
func (a *Agent) prefersRoute(peer vxlan.Peer) bool {
	return !peer.External && (!a.usesVXLAN() || a.Transport == TransportAuto)
}

// directPath returns another host's address in the IP family of a subnet, and this host's device on
// the network segment that the two hosts share. isDirect is false if they share no segment.
func directPath(subnet netip.Prefix, peer vxlan.Peer) (address netip.Addr, device int, isDirect bool) {
	address = peer.Address
	if subnet.Addr().Is6() {
		address = peer.SecondAddress
	}
	if !address.IsValid() {
		return address, 0, false
	}
	paths, err := netlink.RouteGet(address.AsSlice())
	if err != nil || len(paths) == 0 || paths[0].Gw != nil || paths[0].Type != unix.RTN_UNICAST {
		return address, 0, false
	}
	return address, paths[0].LinkIndex, true
}

// usesVXLAN reports whether packets to other hosts can be sent through VXLAN.
func (a *Agent) usesVXLAN() bool { return a.Tunnel != nil && a.Transport != TransportHostGateway }

// vxlanPort returns the VXLAN device's port, or 0 if packets are not sent through VXLAN.
func (a *Agent) vxlanPort(cluster *cluster) int {
	if !a.usesVXLAN() {
		return 0
	}
	return cluster.objects.vxlanPort()
}

// ensureTunnel creates or repairs the VXLAN device and the programs for direct connections. It
// returns the device. The result is nil if packets to other hosts are not sent through VXLAN or if
// there are no other hosts. It is also nil if the cache does not contain the VXLAN settings yet.
func (a *Agent) ensureTunnel(own netip.Prefix, peers map[netip.Prefix]vxlan.Peer, cluster *cluster) (netlink.Link, error) {
	if a.Tunnel == nil {
		return nil, nil
	}
	if len(peers) == 0 {
		return nil, a.Tunnel.Remove(a.VXLANDevice)
	}
	if a.usesVXLAN() && !cluster.objects.synced() {
		return findDevice(a.VXLANDevice)
	}
	mtu, err := a.pathMTU()
	if err != nil {
		return nil, err
	}
	if a.MTU != 0 {
		mtu = min(mtu, a.MTU)
	}
	device := vxlan.Device{Name: a.VXLANDevice, Absent: !a.usesVXLAN(), Port: a.vxlanPort(cluster), MTU: mtu, Subnet: own, SecondSubnet: a.DualStack.Subnet(own), Pods: a.DualStack.Prefixes()}
	if node, exists, err := cluster.nodes.GetByKey(a.NodeName); err == nil && exists {
		device.Address = addressOf(node.(*corev1.Node), ipfamily.IPv4)
	}
	if err := a.Tunnel.Ensure(device, maps.Clone(peers)); err != nil || device.Absent {
		return nil, err
	}
	link, err := netlinksafe.LinkByName(a.VXLANDevice)
	if err != nil {
		return nil, err
	}
	families := []ipfamily.Family{ipfamily.IPv4}
	if device.SecondSubnet.IsValid() {
		families = append(families, ipfamily.IPv6)
	}
	return link, ensureExitRoutes(link, families)
}
