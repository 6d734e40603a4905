package egressip

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/containernetworking/plugins/pkg/netlinksafe"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/slipway-platform/slipway/network/hostaddr"
	"github.com/slipway-platform/slipway/network/ipfamily"
)

// announceDelay is the delay before the second announcement of an address, in case a switch lost
// the first one.
const announceDelay = 2 * time.Second

// Attributes that mark IPv6 egress addresses. The scope cannot serve as a mark, because the kernel
// derives an IPv6 address's scope from the address. The preferred lifetime is 0, so that the host
// does not use the address for its own connections.
const (
	markFlag = unix.IFA_F_HOMEADDRESS
	forever  = math.MaxUint32 // lifetime in seconds
)

// Hold assigns exactly the given egress addresses to a host's device, in addition to the device's
// own addresses. node is the node's IPv4 address on this device. Other hosts on the network segment
// learn new addresses from gratuitous ARP messages and neighbor advertisements. Hold returns an
// error that lists each address that the device cannot have.
func Hold(node netip.Addr, desired []netip.Addr) error {
	addresses, err := hostaddr.ByDevice()
	if err != nil {
		return err
	}
	if len(desired) == 0 && !holdsAny(addresses) {
		return nil
	}
	links, err := netlinksafe.LinkList()
	if err != nil {
		return fmt.Errorf("list devices: %w", err)
	}
	var errs []error
	isOnDevice := false
	for _, link := range links {
		present := addresses[link.Attrs().Index]
		var wanted []netip.Addr
		if at := slices.IndexFunc(present, func(a netlink.Addr) bool { return addressOf(a) == node }); at >= 0 && !isOnDevice {
			isOnDevice = true
			for _, address := range desired {
				if err := check(address, link, present[at]); err != nil {
					errs = append(errs, err)
					continue
				}
				wanted = append(wanted, address)
			}
		}
		errs = append(errs, hold(link, present, wanted))
	}
	if !isOnDevice && len(desired) > 0 {
		errs = append(errs, fmt.Errorf("add egress IPs: no device has the address %s of the node", node))
	}
	return errors.Join(errs...)
}

// holdsAny reports whether a device has an egress address.
func holdsAny(addresses map[int][]netlink.Addr) bool {
	for _, present := range addresses {
		if slices.ContainsFunc(present, isEgress) {
			return true
		}
	}
	return false
}

// check returns an error if an address is not in the node's network segment, or if another machine
// on the segment already uses it. node is the node's IPv4 address on the device.
func check(address netip.Addr, link netlink.Link, node netlink.Addr) error {
	// The route to a documentation address (RFC 5737, RFC 3849) is the default route.
	outside := [...]net.IP{ipfamily.IPv4: net.IPv4(192, 0, 2, 1), ipfamily.IPv6: {0x20, 0x01, 0x0d, 0xb8, 15: 1}}
	routes, err := netlink.RouteGet(outside[ipfamily.Of(address)])
	if err == nil && len(routes) > 0 && routes[0].Gw.Equal(address.AsSlice()) {
		return fmt.Errorf("egress IP %s is the gateway of the node", address)
	}
	if address.Is6() {
		return checkIPv6(address, link)
	}
	bits, _ := node.Mask.Size()
	prefix := netip.PrefixFrom(addressOf(node), bits).Masked()
	broadcast, _ := netip.AddrFromSlice(node.Broadcast.To4())
	if !prefix.Contains(address) || address == prefix.Addr() || address == broadcast {
		return fmt.Errorf("egress IP %s is not in the subnet %s of the node", address, prefix)
	}
	return nil
}

// checkIPv6 returns an error unless the device has a route to the address without a gateway. It
// does not use the prefix length of the node's own address, because DHCP does not assign a prefix
// length.
func checkIPv6(address netip.Addr, link netlink.Link) error {
	filter := &netlink.Route{LinkIndex: link.Attrs().Index, Table: unix.RT_TABLE_MAIN}
	routes, err := netlinksafe.RouteListFiltered(netlink.FAMILY_V6, filter, netlink.RT_FILTER_OIF|netlink.RT_FILTER_TABLE)
	if err != nil {
		return fmt.Errorf("list routes of device %q: %w", link.Attrs().Name, err)
	}
	for _, route := range routes {
		if route.Dst == nil || len(route.Gw) > 0 || len(route.MultiPath) > 0 || !route.Dst.Contains(address.AsSlice()) {
			continue
		}
		if bits, _ := route.Dst.Mask.Size(); bits > 0 && bits < address.BitLen() && !route.Dst.IP.Equal(address.AsSlice()) {
			return nil
		}
	}
	return fmt.Errorf("egress IP %s is not in an IPv6 subnet of the node's device %q", address, link.Attrs().Name)
}

// hold assigns exactly the given egress addresses to a device.
func hold(link netlink.Link, present []netlink.Addr, desired []netip.Addr) error {
	name := link.Attrs().Name
	var errs []error
	for _, existing := range present {
		address := addressOf(existing)
		if !isEgress(existing) {
			// An administrator has assigned this address to the device.
			desired = slices.DeleteFunc(desired, func(a netip.Addr) bool { return a == address })
			continue
		}
		if slices.Contains(desired, address) {
			desired = slices.DeleteFunc(desired, func(a netip.Addr) bool { return a == address })
			continue
		}
		if err := netlink.AddrDel(link, &existing); err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) {
			errs = append(errs, fmt.Errorf("remove egress IP %s from device %q: %w", address, name, err))
			continue
		}
		slog.Info("removed egress IP", "address", address, "device", name)
	}
	for _, address := range desired {
		if err := netlink.AddrReplace(link, entryOf(address, name)); err != nil {
			errs = append(errs, fmt.Errorf("add egress IP %s to device %q: %w", address, name, err))
			continue
		}
		slog.Info("added egress IP", "address", address, "device", name)
		announce(link, address)
	}
	return errors.Join(errs...)
}

// isEgress reports whether an address was assigned by Hold.
func isEgress(a netlink.Addr) bool {
	if addressOf(a).Is4() {
		return a.Scope == hostaddr.EgressScope
	}
	return a.Flags&markFlag != 0 && a.Flags&unix.IFA_F_DEPRECATED != 0
}

// entryOf returns the entry with which Hold assigns an egress address to a device.
func entryOf(address netip.Addr, device string) *netlink.Addr {
	if address.Is6() {
		return &netlink.Addr{IPNet: netlink.NewIPNet(address.AsSlice()), Flags: markFlag | unix.IFA_F_NODAD, ValidLft: forever}
	}
	entry := &netlink.Addr{IPNet: netlink.NewIPNet(address.AsSlice()), Scope: hostaddr.EgressScope}
	if label := device + ":eip"; len(label) < unix.IFNAMSIZ {
		entry.Label = label
	}
	return entry
}

// announce announces a new address on the network segment immediately, and again after
// announceDelay.
func announce(link netlink.Link, address netip.Addr) {
	if len(link.Attrs().HardwareAddr) != 6 {
		return
	}
	message := sendARP
	if address.Is6() {
		message = sendAdvertisement
	}
	send := func() {
		if err := message(link.Attrs().Index, link.Attrs().HardwareAddr, address); err != nil {
			slog.Warn("cannot announce egress IP", "address", address, "error", err)
		}
	}
	send()
	time.AfterFunc(announceDelay, send)
}

// sendARP broadcasts an ARP announcement: an ARP request for the sender's own address (RFC 5227,
// section 3).
func sendARP(device int, mac net.HardwareAddr, address netip.Addr) error {
	socket, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open packet socket: %w", err)
	}
	defer unix.Close(socket)
	message := []byte{0, 1, 8, 0, 6, 4, 0, 1}
	message = append(append(message, mac...), address.AsSlice()...)
	message = append(append(message, make([]byte, 6)...), address.AsSlice()...)
	to := &unix.SockaddrLinklayer{
		Protocol: binary.NativeEndian.Uint16([]byte{unix.ETH_P_ARP >> 8, unix.ETH_P_ARP & 0xff}),
		Ifindex:  device, Halen: 6, Addr: [8]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
	}
	if err := unix.Sendto(socket, message, 0, to); err != nil {
		return fmt.Errorf("send ARP message: %w", err)
	}
	return nil
}

// sendAdvertisement sends an unsolicited neighbor advertisement to all nodes (RFC 4861, 7.2.6). The
// kernel adds the checksum.
func sendAdvertisement(device int, mac net.HardwareAddr, address netip.Addr) error {
	const advertisement, override, targetLinkLayerAddress, hopLimit = 136, 0x20, 2, 255
	socket, err := unix.Socket(unix.AF_INET6, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_ICMPV6)
	if err != nil {
		return fmt.Errorf("open ICMPv6 socket: %w", err)
	}
	defer unix.Close(socket)
	err = errors.Join(
		unix.SetsockoptInt(socket, unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_HOPS, hopLimit),
		unix.SetsockoptInt(socket, unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_IF, device),
		unix.Bind(socket, &unix.SockaddrInet6{Addr: address.As16()}),
	)
	if err != nil {
		return fmt.Errorf("set up ICMPv6 socket: %w", err)
	}
	message := append([]byte{advertisement, 0, 0, 0, override, 0, 0, 0}, address.AsSlice()...)
	message = append(append(message, targetLinkLayerAddress, 1), mac...)
	allNodes := netip.IPv6LinkLocalAllNodes().As16()
	if err := unix.Sendto(socket, message, 0, &unix.SockaddrInet6{Addr: allNodes, ZoneId: uint32(device)}); err != nil {
		return fmt.Errorf("send neighbor advertisement: %w", err)
	}
	return nil
}

func addressOf(a netlink.Addr) netip.Addr {
	address, _ := netip.AddrFromSlice(a.IP)
	return address.Unmap()
}

// Release removes the egress addresses from all devices.
func Release() error { return Hold(netip.Addr{}, nil) }
