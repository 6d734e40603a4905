package egressip

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/containernetworking/plugins/pkg/netlinksafe"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/slipway-platform/slipway/network/hostaddr"
)

// announceDelay is the delay before the second announcement, for switches that lost the first one.
const announceDelay = 2 * time.Second

// Hold assigns exactly the given egress addresses to a host's device, in addition to the device's
// own addresses. node is the node's address on this device. Other hosts on the network segment
// learn new addresses from gratuitous ARP messages. Hold returns an error that lists each address
// that the device cannot have.
func Hold(node netip.Addr, desired []netip.Addr) error {
	links, err := netlinksafe.LinkList()
	if err != nil {
		return fmt.Errorf("list devices: %w", err)
	}
	var errs []error
	isOnDevice := false
	for _, link := range links {
		present, err := netlinksafe.AddrList(link, netlink.FAMILY_V4)
		if err != nil {
			return fmt.Errorf("list addresses of device %q: %w", link.Attrs().Name, err)
		}
		var wanted []netip.Addr
		if at := slices.IndexFunc(present, func(a netlink.Addr) bool { return addressOf(a) == node }); at >= 0 && !isOnDevice {
			isOnDevice = true
			for _, address := range desired {
				if err := check(address, present[at]); err != nil {
					errs = append(errs, err)
					continue
				}
				wanted = append(wanted, address)
			}
		}
		errs = append(errs, hold(link, present, wanted))
	}
	if !isOnDevice && len(desired) > 0 {
		errs = append(errs, fmt.Errorf("hold egress IPs: no device has the address %s of the node", node))
	}
	return errors.Join(errs...)
}

// check returns an error if an address is not in the node's network segment, or is already in use
// there.
func check(address netip.Addr, node netlink.Addr) error {
	bits, _ := node.Mask.Size()
	prefix := netip.PrefixFrom(addressOf(node), bits).Masked()
	broadcast, _ := netip.AddrFromSlice(node.Broadcast.To4())
	if !prefix.Contains(address) || address == prefix.Addr() || address == broadcast {
		return fmt.Errorf("egress IP %s is not in the subnet %s of the node", address, prefix)
	}
	routes, err := netlink.RouteGet(net.IPv4(192, 0, 2, 1))
	if err == nil && len(routes) > 0 && routes[0].Gw.Equal(address.AsSlice()) {
		return fmt.Errorf("egress IP %s is the gateway of the node", address)
	}
	return nil
}

// hold assigns exactly the given egress addresses to a device.
func hold(link netlink.Link, present []netlink.Addr, desired []netip.Addr) error {
	name := link.Attrs().Name
	var errs []error
	for _, existing := range present {
		address := addressOf(existing)
		if existing.Scope != hostaddr.EgressScope {
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
		entry := &netlink.Addr{IPNet: netlink.NewIPNet(address.AsSlice()), Scope: hostaddr.EgressScope}
		if label := name + ":eip"; len(label) < unix.IFNAMSIZ {
			entry.Label = label
		}
		if err := netlink.AddrReplace(link, entry); err != nil {
			errs = append(errs, fmt.Errorf("add egress IP %s to device %q: %w", address, name, err))
			continue
		}
		slog.Info("added egress IP", "address", address, "device", name)
		announce(link, address)
	}
	return errors.Join(errs...)
}

// announce sends a gratuitous ARP message immediately, and again after announceDelay.
func announce(link netlink.Link, address netip.Addr) {
	if len(link.Attrs().HardwareAddr) != 6 {
		return
	}
	send := func() {
		if err := sendARP(link.Attrs().Index, link.Attrs().HardwareAddr, address); err != nil {
			slog.Warn("cannot announce egress IP", "address", address, "error", err)
		}
	}
	send()
	time.AfterFunc(announceDelay, send)
}

// sendARP broadcasts an ARP announcement, which is a request for the sender's own address (RFC
// 5227, section 3).
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

func addressOf(a netlink.Addr) netip.Addr {
	address, _ := netip.AddrFromSlice(a.IP)
	return address.Unmap()
}

// Release removes the egress addresses from all devices.
func Release() error { return Hold(netip.Addr{}, nil) }
