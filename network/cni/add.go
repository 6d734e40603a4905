package cni

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	current "github.com/containernetworking/cni/pkg/types/100"
	"github.com/containernetworking/plugins/pkg/utils"
	"github.com/vishvananda/netlink"

	"github.com/slipway-platform/slipway/network/ipfamily"
	"github.com/slipway-platform/slipway/network/nat"
	"github.com/slipway-platform/slipway/network/shaping"
)

func add(args *skel.CmdArgs) error {
	c, err := newCall(args)
	if err != nil {
		return err
	}
	ports, err := c.config.ports()
	if err != nil {
		return err
	}
	name, err := podNameOf(args)
	if err != nil {
		return err
	}
	unlock, err := c.leases.lockShared()
	if err != nil {
		return err
	}
	defer unlock()

	bridge, err := findBridge(c.config.Bridge)
	if err != nil {
		return types.NewError(types.ErrTryAgainLater, err.Error(), "the network agent has not created the bridge yet")
	}
	l, err := c.leases.reserve(lease{Device: c.device, Container: args.ContainerID, Interface: args.IfName, Pod: name, Ports: ports})
	if err != nil {
		return err
	}
	result, err := c.attach(bridge, l)
	if err != nil {
		return errors.Join(err, c.config.detach(c.device, len(ports) > 0))
	}
	return types.PrintResult(result, c.config.CNIVersion)
}

// attach connects a lease's pod to the network. It creates the devices, sets the bandwidth limits,
// waits for the network policies, and publishes the host ports.
func (c *call) attach(bridge netlink.Link, l lease) (*current.Result, error) {
	host, pod, err := c.createVeth(bridge, l)
	if err != nil {
		return nil, err
	}
	for _, e := range c.config.ends(l) {
		if err := deletePreviousConntrack(e.address); err != nil {
			return nil, err
		}
	}
	if err := c.config.limit(l, bridge); err != nil {
		return nil, err
	}
	second, err := c.createMacvlan(l)
	if err != nil {
		return nil, err
	}
	if err := c.config.awaitPolicy(l); err != nil {
		return nil, err
	}
	if err := c.config.publish(l); err != nil {
		return nil, err
	}
	result := &current.Result{
		CNIVersion: current.ImplementedSpecVersion,
		Interfaces: append([]*current.Interface{
			{Name: c.config.Bridge, Mac: bridge.Attrs().HardwareAddr.String()},
			{Name: host.Name, Mac: host.HardwareAddr.String(), Mtu: host.MTU},
			{Name: pod.Name, Mac: pod.HardwareAddr.String(), Mtu: pod.MTU, Sandbox: c.args.Netns},
		}, second...),
	}
	podIndex := 2
	for _, e := range c.config.ends(l) {
		result.IPs = append(result.IPs, &current.IPConfig{Interface: &podIndex, Address: *hostNet(e.address), Gateway: e.gateway.AsSlice()})
		result.Routes = append(result.Routes, &types.Route{Dst: *allAddresses(e.address), GW: e.gateway.AsSlice()})
	}
	return result, nil
}

// allAddresses returns 0.0.0.0/0 or ::/0, depending on the family of an address.
func allAddresses(address netip.Addr) *net.IPNet {
	size := address.BitLen()
	return &net.IPNet{IP: make(net.IP, size/8), Mask: net.CIDRMask(0, size)}
}

// limit limits the bandwidth of the lease's pod.
func (c Config) limit(l lease, bridge netlink.Link) error {
	limits := shaping.Limits{Ingress: c.RuntimeConfig.Bandwidth.IngressRate, Egress: c.RuntimeConfig.Bandwidth.EgressRate}
	if limits == (shaping.Limits{}) {
		return nil
	}
	return shaping.Apply(shaping.Pod{
		Device: l.Device, Address: l.Address, SecondAddress: c.second(l), MAC: HardwareAddress(l.Address), GatewayMAC: bridge.Attrs().HardwareAddr,
	}, limits)
}

// publish forwards the lease's host ports to the pod.
func (c Config) publish(l lease) error {
	if len(l.Ports) == 0 {
		return nil
	}
	unlock, err := c.leases().lockChange()
	if err != nil {
		return err
	}
	defer unlock()
	for _, e := range c.ends(l) {
		if err := nat.Publish(context.Background(), c.NFTTable, l.Device, e.address, l.Ports, deviceExists); err != nil {
			return err
		}
		if err := deleteConntrack(l.Ports, e.address); err != nil {
			return err
		}
	}
	return nil
}

// deleteConntrack deletes the conntrack entries of clients that sent datagrams to the host ports
// before the pod existed. Otherwise, their datagrams would still go to the previous destination.
func deleteConntrack(ports []nat.Port, pod netip.Addr) error {
	family := netlink.InetFamily(ipfamily.Of(pod).Netlink())
	for _, p := range ports {
		if p.Protocol != "udp" || !p.LeadsTo(pod) {
			continue
		}
		if err := utils.DeleteConntrackEntriesForDstPort(p.HostPort, utils.PROTOCOL_UDP, family); err != nil {
			return fmt.Errorf("delete conntrack entries of host port %s: %w", p, err)
		}
	}
	return nil
}

// owner matches the conntrack entries of a pod's address.
type owner net.IP

// MatchConntrackFlow implements netlink.CustomConntrackFilter.
func (o owner) MatchConntrackFlow(flow *netlink.ConntrackFlow) bool {
	for _, ip := range []net.IP{flow.Forward.SrcIP, flow.Forward.DstIP, flow.Reverse.SrcIP, flow.Reverse.DstIP} {
		if ip.Equal(net.IP(o)) {
			return true
		}
	}
	return false
}

// deletePreviousConntrack deletes the conntrack entries of pods that had the address before.
// Otherwise, the peer of a previous pod's connection could send packets to the new pod as replies,
// which network policies accept.
func deletePreviousConntrack(address netip.Addr) error {
	if _, err := netlink.ConntrackDeleteFilters(netlink.ConntrackTable, netlink.InetFamily(ipfamily.Of(address).Netlink()), owner(address.AsSlice())); err != nil {
		return fmt.Errorf("delete conntrack entries of earlier owners of address %s: %w", address, err)
	}
	return nil
}

// detach removes a pod's attachment. It releases the address last, when nothing uses the address
// anymore. If detach fails, it keeps the lease, so that the next call can retry.
func (c Config) detach(device string, published bool) error {
	l, hasLease, err := c.leases().find(device)
	if err != nil {
		return err
	}
	if published || len(l.Ports) > 0 {
		err = c.unpublish(device)
	}
	if err := errors.Join(err, removeVeth(device), shaping.Remove(device)); err != nil {
		return err
	}
	if err := c.detachFromBridge(device, l); err != nil || !hasLease {
		return err
	}
	unlock, err := c.leases().lockChange()
	if err != nil {
		return err
	}
	defer unlock()
	return c.leases().release(l.Address)
}

func (c Config) unpublish(device string) error {
	unlock, err := c.leases().lockChange()
	if err != nil {
		return err
	}
	defer unlock()
	return nat.Unpublish(context.Background(), c.NFTTable, device, c.families()...)
}
