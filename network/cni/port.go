package cni

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/containernetworking/plugins/pkg/netlinksafe"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/slipway-platform/slipway/network/ipfamily"
	"github.com/slipway-platform/slipway/network/spoofcheck"
)

// attachToBridge makes a pod's device a port of the bridge. A pod cannot use another pod's address,
// because package spoofcheck drops forged frames even before the device becomes a port. Two
// additional measures remain effective if another program removes spoofcheck's rules. First, the
// bridge learns no addresses from the pod and sends no frames for other pods to the pod. Second,
// the host and the pod ignore ARP messages about each other.
func (c Config) attachToBridge(l lease, bridge netlink.Link) error {
	if err := spoofcheck.Check(c.NFTTable, c.source(l)); err != nil {
		return err
	}
	link, err := netlinksafe.LinkByName(l.Device)
	if err != nil {
		return fmt.Errorf("find device %q: %w", l.Device, err)
	}
	if err := netlink.LinkSetMaster(link, bridge); err != nil {
		return fmt.Errorf("attach device %q to bridge %q: %w", l.Device, c.Bridge, err)
	}
	if err := setPortFlags(link, c.Hairpin); err != nil {
		return fmt.Errorf("set flags of port %q of bridge %q: %w", l.Device, c.Bridge, err)
	}
	for _, n := range c.neighbors(bridge, l) {
		if err := netlink.NeighSet(n); err != nil {
			return fmt.Errorf("set neighbor %s of bridge %q: %w", n.IP, c.Bridge, err)
		}
	}
	// This must be the last step, because isAttached checks for it.
	if err := netlink.NeighSet(forwardingEntry(link, l.Address)); err != nil {
		return fmt.Errorf("set MAC address of port %q of bridge %q: %w", l.Device, c.Bridge, err)
	}
	return nil
}

// detachFromBridge removes the objects created by attachToBridge that the kernel does not remove
// with the device. l is empty if the device has no lease.
func (c Config) detachFromBridge(device string, l lease) error {
	if err := spoofcheck.Remove(c.NFTTable, device); err != nil {
		return err
	}
	bridge, err := netlinksafe.LinkByName(c.Bridge)
	if err != nil || !l.Address.IsValid() {
		return nil // without the bridge, no neighbor entries exist
	}
	var errs []error
	for _, n := range c.neighbors(bridge, l) {
		errs = append(errs, deleteNeighbor(n))
	}
	return errors.Join(errs...)
}

func deleteNeighbor(n *netlink.Neigh) error {
	if err := netlink.NeighDel(n); err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("delete neighbor %s: %w", n.IP, err)
	}
	return nil
}

// source returns the addresses from which a pod is allowed to send.
func (c Config) source(l lease) spoofcheck.Pod {
	gateway := Gateway(c.PodCIDR)
	return spoofcheck.Pod{
		Device:  l.Device,
		Address: l.Address, SecondAddress: c.second(l), MAC: HardwareAddress(l.Address),
		GatewayAddress: gateway, GatewayMAC: HardwareAddress(gateway),
	}
}

// checkFilter checks that a pod's frames are filtered.
func (c Config) checkFilter(l lease) error {
	chains, err := spoofcheck.List(c.NFTTable)
	if err != nil {
		return err
	}
	if !chains.Has(c.source(l)) {
		return fmt.Errorf("check device %q: its source address filter is missing", l.Device)
	}
	return nil
}

// setPortFlags configures a bridge port whose MAC address is static. The bridge learns no addresses
// from the port, and sends no broadcasts, multicasts or frames for unknown addresses to it.
func setPortFlags(link netlink.Link, hairpin bool) error {
	request := nl.NewNetlinkRequest(unix.RTM_SETLINK, unix.NLM_F_ACK)
	header := nl.NewIfInfomsg(unix.AF_BRIDGE)
	header.Index = int32(link.Attrs().Index)
	request.AddData(header)
	flags := nl.NewRtAttr(unix.IFLA_PROTINFO|unix.NLA_F_NESTED, nil)
	for _, flag := range []int{nl.IFLA_BRPORT_LEARNING, nl.IFLA_BRPORT_UNICAST_FLOOD, nl.IFLA_BRPORT_MCAST_FLOOD, nl.IFLA_BRPORT_BCAST_FLOOD} {
		flags.AddRtAttr(flag, nl.Uint8Attr(0))
	}
	var mode uint8
	if hairpin {
		mode = 1
	}
	flags.AddRtAttr(nl.IFLA_BRPORT_MODE, nl.Uint8Attr(mode))
	request.AddData(flags)
	_, err := request.Execute(unix.NETLINK_ROUTE, 0)
	return err
}

// neighbor returns the permanent neighbor entry for an address in the cluster. Received packets
// cannot change a permanent entry.
func neighbor(link netlink.Link, address netip.Addr, mac net.HardwareAddr) *netlink.Neigh {
	return &netlink.Neigh{
		LinkIndex: link.Attrs().Index, Family: ipfamily.Of(address).Netlink(), State: netlink.NUD_PERMANENT,
		IP: address.AsSlice(), HardwareAddr: mac,
	}
}

// neighbors returns the neighbor entries for a pod's addresses.
func (c Config) neighbors(bridge netlink.Link, l lease) (list []*netlink.Neigh) {
	for _, e := range c.ends(l) {
		list = append(list, neighbor(bridge, e.address, HardwareAddress(l.Address)))
	}
	return list
}

// forwardingEntry returns the static entry for a port's only MAC address in the bridge's forwarding
// table.
func forwardingEntry(port netlink.Link, address netip.Addr) *netlink.Neigh {
	return &netlink.Neigh{
		LinkIndex: port.Attrs().Index, Family: unix.AF_BRIDGE, Flags: netlink.NTF_MASTER, State: netlink.NUD_NOARP,
		HardwareAddr: HardwareAddress(address),
	}
}

// attachments contains the kernel's entries for the pods on the host.
type attachments struct {
	bridge                netlink.Link
	chains                spoofcheck.Chains
	forwarding, neighbors []netlink.Neigh
}

func (c Config) attachments(bridge netlink.Link) (attachments, error) {
	a := attachments{bridge: bridge}
	var err error
	if a.chains, err = spoofcheck.List(c.NFTTable); err != nil {
		return a, err
	}
	// An interrupted dump might not contain all entries. In that case, the missing entries are set
	// again.
	if a.forwarding, err = netlink.NeighList(0, unix.AF_BRIDGE); err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
		return a, fmt.Errorf("list MAC addresses of bridge %q: %w", c.Bridge, err)
	}
	for _, family := range c.families() {
		neighbors, err := netlink.NeighList(bridge.Attrs().Index, family.Netlink())
		if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
			return a, fmt.Errorf("list neighbors of bridge %q: %w", c.Bridge, err)
		}
		a.neighbors = append(a.neighbors, neighbors...)
	}
	return a, nil
}

// families returns the pods' IP families.
func (c Config) families() []ipfamily.Family {
	if c.SecondCIDR.IsValid() {
		return []ipfamily.Family{ipfamily.IPv4, ipfamily.IPv6}
	}
	return []ipfamily.Family{ipfamily.IPv4}
}

// isAttached reports whether attachToBridge has completed all of its steps for a pod.
func (c Config) isAttached(l lease, device netlink.Link, a attachments) bool {
	return device.Attrs().MasterIndex == a.bridge.Attrs().Index && a.chains.Has(c.source(l)) &&
		hasEntry(a.forwarding, forwardingEntry(device, l.Address)) &&
		!slices.ContainsFunc(c.neighbors(a.bridge, l), func(n *netlink.Neigh) bool { return !hasEntry(a.neighbors, n) })
}

func hasEntry(entries []netlink.Neigh, want *netlink.Neigh) bool {
	return slices.ContainsFunc(entries, func(e netlink.Neigh) bool {
		return e.LinkIndex == want.LinkIndex && e.State == want.State && e.IP.Equal(want.IP) && bytes.Equal(e.HardwareAddr, want.HardwareAddr)
	})
}

// has reports whether a pod has an address.
func (c Config) has(l lease, ip net.IP) bool {
	return slices.ContainsFunc(c.ends(l), func(e ends) bool { return ip.Equal(e.address.AsSlice()) })
}

// removeUnused removes the chains and neighbor entries of pods that no longer exist.
func (c Config) removeUnused(a attachments, leases []lease) error {
	var errs []error
	for device := range a.chains {
		if !slices.ContainsFunc(leases, func(l lease) bool { return l.Device == device && deviceExists(device) }) {
			errs = append(errs, spoofcheck.Remove(c.NFTTable, device))
		}
	}
	for _, n := range a.neighbors {
		if n.State == netlink.NUD_PERMANENT && !slices.ContainsFunc(leases, func(l lease) bool { return c.has(l, n.IP) && deviceExists(l.Device) }) {
			errs = append(errs, deleteNeighbor(&n))
		}
	}
	return errors.Join(errs...)
}
