package vxlan

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/cilium/ebpf"
	"github.com/containernetworking/plugins/pkg/netlinksafe"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/slipway-platform/slipway/network/cni"
	"github.com/slipway-platform/slipway/network/ipfamily"
)

// gateway returns a node's address in its pod subnet.
func gateway(subnet netip.Prefix) netip.Addr { return cni.Gateway(subnet) }

// configure attaches the programs to the device and sets the device up. The device is up only if
// the programs are attached to it: without them, it would accept packets from any sender.
func (d Device) configure(link netlink.Link, p *programs, peers map[netip.Prefix]Peer) error {
	for parent, program := range map[uint32]*ebpf.Program{netlink.HANDLE_MIN_EGRESS: p.egress, netlink.HANDLE_MIN_INGRESS: p.ingress} {
		if err := attach(link, parent, devicePriority, program); err != nil {
			return err
		}
	}
	if link.Attrs().MTU != d.MTU {
		if err := netlink.LinkSetMTU(link, d.MTU); err != nil {
			return fmt.Errorf("set MTU of device %q to %d: %w", d.Name, d.MTU, err)
		}
	}
	if err := d.setSysctls(); err != nil {
		return err
	}
	for _, subnet := range d.subnets() {
		if err := d.setAddress(link, gateway(subnet)); err != nil {
			return err
		}
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("set device %q up: %w", d.Name, err)
	}
	return d.setNeighbors(link, peers)
}

// create returns the device. It creates the device if necessary, and replaces a device that has
// different settings.
func (d Device) create() (link netlink.Link, isNew bool, err error) {
	link, err = find(d.Name)
	if err != nil {
		return nil, false, err
	}
	mac := cni.HardwareAddress(gateway(d.Subnet))
	if link != nil {
		vxlan, ok := link.(*netlink.Vxlan)
		switch {
		case !ok:
			return nil, false, fmt.Errorf("create device %q: the name is in use by a device of type %q", d.Name, link.Type())
		case vxlan.FlowBased && vxlan.Port == d.Port && bytes.Equal(vxlan.HardwareAddr, mac):
			return link, false, nil
		}
		if err := netlink.LinkDel(link); err != nil {
			return nil, false, fmt.Errorf("remove device %q: %w", d.Name, err)
		}
	}
	attributes := netlink.NewLinkAttrs()
	attributes.Name, attributes.MTU, attributes.HardwareAddr = d.Name, d.MTU, mac
	if err := netlink.LinkAdd(&netlink.Vxlan{LinkAttrs: attributes, FlowBased: true, Port: d.Port}); err != nil {
		if errors.Is(err, unix.EADDRINUSE) || errors.Is(err, unix.EEXIST) {
			return nil, false, fmt.Errorf("create device %q: UDP port %d is in use: %w; set networkConfig.vxlanPort in master-config.yaml", d.Name, d.Port, err)
		}
		return nil, false, fmt.Errorf("create device %q: %w", d.Name, err)
	}
	if link, err = netlinksafe.LinkByName(d.Name); err != nil {
		return nil, false, fmt.Errorf("find device %q: %w", d.Name, err)
	}
	return link, true, nil
}

// attach makes a program the only program with the given priority at a tc hook of the device. It
// atomically replaces a previous process's program.
func attach(link netlink.Link, parent uint32, priority uint16, program *ebpf.Program) error {
	if err := addHooks(link); err != nil {
		return err
	}
	filter := &netlink.BpfFilter{
		FilterAttrs: netlink.FilterAttrs{LinkIndex: link.Attrs().Index, Parent: parent, Handle: 1, Protocol: unix.ETH_P_ALL, Priority: priority},
		Fd:          program.FD(), Name: filterName, DirectAction: true,
	}
	if err := netlink.FilterReplace(filter); err != nil {
		return fmt.Errorf("add program to device %q: %w", link.Attrs().Name, err)
	}
	return nil
}

// addHooks adds a clsact qdisc, which contains the tc hooks, to a device unless the device already
// has one. An "ingress" qdisc is not sufficient: it has only one hook, at which both programs would
// process received packets.
func addHooks(link netlink.Link) error {
	name := link.Attrs().Name
	err := netlink.QdiscAdd(hooksOf(link.Attrs().Index))
	if err == nil {
		return nil
	}
	if !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("add tc hooks to device %q: %w", name, err)
	}
	hooks, err := findHooks(link)
	if err != nil {
		return err
	}
	if hooks != nil && !isClsact(hooks) {
		return fmt.Errorf(`device %q has a tc qdisc of type %q: remove it with "tc qdisc del dev %[1]s ingress", and add its filters to a qdisc of type "clsact"`,
			name, hooks.Type())
	}
	return nil
}

// hooksOf returns the qdisc that contains a device's tc hooks.
func hooksOf(index int) *netlink.Clsact {
	return &netlink.Clsact{QdiscAttrs: netlink.QdiscAttrs{LinkIndex: index, Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_CLSACT}}
}

// findHooks returns the qdisc with a device's tc hooks, or nil if the device has none.
func findHooks(link netlink.Link) (netlink.Qdisc, error) {
	queues, err := netlink.QdiscList(link)
	if err != nil {
		return nil, fmt.Errorf("list tc hooks of device %q: %w", link.Attrs().Name, err)
	}
	for _, queue := range queues {
		if queue.Attrs().Parent == netlink.HANDLE_CLSACT {
			return queue, nil
		}
	}
	return nil, nil
}

// isClsact reports whether a qdisc has hooks for both received and sent packets.
func isClsact(hooks netlink.Qdisc) bool {
	_, isClsact := hooks.(*netlink.Clsact)
	return isClsact
}

// Priorities of filters. By default, the kernel gives an administrator's filters smaller numbers
// than segmentPriority, so they run before the programs on network segments. See checkSegment.
const (
	devicePriority  = 1
	segmentPriority = 0xd000
)

// subnets returns the subnets of this node's pods.
func (d Device) subnets() []netip.Prefix {
	if d.SecondSubnet.IsValid() {
		return []netip.Prefix{d.Subnet, d.SecondSubnet}
	}
	return []netip.Prefix{d.Subnet}
}

// setAddress assigns an address of the node in the pod network to the device. The node uses it as
// the source address of packets to pods on other hosts.
func (d Device) setAddress(link netlink.Link, node netip.Addr) error {
	desired := &netlink.Addr{
		IPNet: &net.IPNet{IP: node.AsSlice(), Mask: net.CIDRMask(node.BitLen(), node.BitLen())}, Flags: cni.AddressFlags(node),
	}
	present, err := netlinksafe.AddrList(link, ipfamily.Of(node).Netlink())
	if err != nil {
		return fmt.Errorf("list addresses of device %q: %w", d.Name, err)
	}
	for _, address := range present {
		if address.Equal(*desired) {
			return nil
		}
	}
	if err := netlink.AddrAdd(link, desired); err != nil {
		return fmt.Errorf("set address of device %q: %w", d.Name, err)
	}
	return nil
}

// setSysctls makes the device forward packets, and respond to other hosts' ARP requests for this
// node's pods. It enables IPv6 only if pods have IPv6 addresses. Because the program checks the
// source of packets, the kernel can accept packets whose responses take another path.
func (d Device) setSysctls() error {
	for name, value := range map[string]string{
		"ipv4/conf/" + d.Name + "/forwarding":   "1",
		"ipv4/conf/" + d.Name + "/proxy_arp":    "1",
		"ipv4/conf/" + d.Name + "/rp_filter":    looseFilter(),
		"ipv4/neigh/" + d.Name + "/proxy_delay": "0",
	} {
		path := filepath.Join("/proc/sys/net", name)
		if present, err := os.ReadFile(path); err == nil && string(bytes.TrimSpace(present)) == value {
			continue
		}
		if err := os.WriteFile(path, []byte(value), 0o644); err != nil {
			return fmt.Errorf("set sysctl: %w", err)
		}
	}
	return cni.SetIPv6(d.Name, d.SecondSubnet.IsValid())
}

// looseFilter returns the weakest value of a device's rp_filter with which the kernel accepts
// packets whose responses take another path. The kernel uses the greater of two values: the
// device's value and the value for all devices. The value 0 saves a route lookup for each packet.
func looseFilter() string {
	const off, loose = "0", "2"
	all, err := os.ReadFile("/proc/sys/net/ipv4/conf/all/rp_filter")
	if err == nil && string(bytes.TrimSpace(all)) == off {
		return off
	}
	return loose
}

// setNeighbors maintains the permanent neighbor entries for the other nodes, whose MAC addresses
// are derived from their IPv4 addresses. Hosts that are not nodes need no entries, because they
// respond to ARP requests.
func (d Device) setNeighbors(link netlink.Link, peers map[netip.Prefix]Peer) error {
	present, err := netlink.NeighList(link.Attrs().Index, netlink.FAMILY_ALL)
	if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
		return fmt.Errorf("list neighbors of device %q: %w", link.Attrs().Name, err)
	}
	// desired maps each address to the IPv4 address from which its MAC address is derived.
	placeholder := NextHop(ipfamily.IPv4)
	desired := map[netip.Addr]netip.Addr{placeholder: placeholder}
	if d.SecondSubnet.IsValid() {
		desired[NextHop(ipfamily.IPv6)] = placeholder
	}
	for subnet, peer := range peers {
		switch node := gateway(subnet); {
		case peer.External:
		case node.Is4():
			desired[node] = node
		default:
			desired[node] = peer.Gateway
		}
	}
	var errs []error
	for _, neighbor := range present {
		address, ok := netip.AddrFromSlice(neighbor.IP)
		if !ok || neighbor.State != netlink.NUD_PERMANENT {
			continue
		}
		address = address.Unmap()
		if owner, exists := desired[address]; exists && bytes.Equal(neighbor.HardwareAddr, cni.HardwareAddress(owner)) {
			delete(desired, address)
		} else if err := netlink.NeighDel(&neighbor); err != nil && !errors.Is(err, unix.ENOENT) {
			errs = append(errs, fmt.Errorf("delete neighbor %s: %w", address, err))
		}
	}
	for address, owner := range desired {
		neighbor := &netlink.Neigh{
			LinkIndex: link.Attrs().Index, Family: ipfamily.Of(address).Netlink(), State: netlink.NUD_PERMANENT,
			IP: address.AsSlice(), HardwareAddr: cni.HardwareAddress(owner),
		}
		if err := netlink.NeighSet(neighbor); err != nil {
			errs = append(errs, fmt.Errorf("set neighbor %s: %w", address, err))
		}
	}
	return errors.Join(errs...)
}

func removeDevice(name string) error {
	link, err := find(name)
	if err != nil || link == nil {
		return err
	}
	if err := netlink.LinkDel(link); err != nil && !errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("remove device %q: %w", name, err)
	}
	return nil
}

// find returns a device, or nil if the device does not exist.
func find(name string) (netlink.Link, error) {
	link, err := netlinksafe.LinkByName(name)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find device %q: %w", name, err)
	}
	return link, nil
}
