package agent

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/containernetworking/plugins/pkg/netlinksafe"
	"github.com/vishvananda/netlink"

	"github.com/slipway-platform/slipway/network/cni"
	"github.com/slipway-platform/slipway/network/hostaddr"
)

// makeDevices makes the bridge, with the first address of the subnet, and the device of the DNS server. The latter is a
// bridge without ports: pods need bridges anyway, and not every kernel has dummy devices.
func (a *Agent) makeDevices(subnet netip.Prefix) error {
	mtu := a.MTU
	if mtu == 0 {
		var err error
		if mtu, err = hostaddr.MTU(); err != nil {
			return err
		}
	}
	gateway := cni.Gateway(subnet)
	if err := makeBridge(a.Bridge, netip.PrefixFrom(gateway, subnet.Bits()), mtu); err != nil {
		return err
	}
	if !a.DNSIP.IsValid() {
		return nil
	}
	return makeBridge(a.DNSDevice, netip.PrefixFrom(a.DNSIP, a.DNSIP.BitLen()), 1500)
}

// makeBridge makes a bridge that is up and has exactly one IPv4 address. Its MAC address follows from that address, else
// it would change with the ports.
func makeBridge(name string, address netip.Prefix, mtu int) error {
	mac := cni.HardwareAddress(address.Addr())
	link, err := findDevice(name)
	if err != nil {
		return err
	}
	if link == nil {
		attrs := netlink.NewLinkAttrs()
		attrs.Name, attrs.MTU, attrs.HardwareAddr = name, mtu, mac
		if err := netlink.LinkAdd(&netlink.Bridge{LinkAttrs: attrs}); err != nil {
			return fmt.Errorf("make bridge %q: %w", name, err)
		}
		if link, err = netlinksafe.LinkByName(name); err != nil {
			return fmt.Errorf("find bridge %q: %w", name, err)
		}
	}
	if link.Type() != "bridge" {
		return fmt.Errorf("make bridge %q: a device of this name exists and is a %s", name, link.Type())
	}
	if !bytes.Equal(link.Attrs().HardwareAddr, mac) {
		if err := netlink.LinkSetHardwareAddr(link, mac); err != nil {
			return fmt.Errorf("set hardware address of bridge %q: %w", name, err)
		}
	}
	if link.Attrs().MTU != mtu {
		if err := netlink.LinkSetMTU(link, mtu); err != nil {
			return fmt.Errorf("set MTU of bridge %q: %w", name, err)
		}
	}
	if err := setAddress(link, address); err != nil {
		return err
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("set bridge %q up: %w", name, err)
	}
	return nil
}

// setAddress gives a device an IPv4 address and takes every other, such as that of an earlier subnet.
func setAddress(link netlink.Link, address netip.Prefix) error {
	name := link.Attrs().Name
	present, err := netlinksafe.AddrList(link, netlink.FAMILY_V4)
	if err != nil {
		return fmt.Errorf("list addresses of device %q: %w", name, err)
	}
	wanted := &netlink.Addr{IPNet: &net.IPNet{IP: address.Addr().AsSlice(), Mask: net.CIDRMask(address.Bits(), 32)}}
	has := false
	for _, other := range present {
		if other.Equal(*wanted) {
			has = true
			continue
		}
		if err := netlink.AddrDel(link, &other); err != nil {
			return fmt.Errorf("remove address %s of device %q: %w", other.IPNet, name, err)
		}
	}
	if has {
		return nil
	}
	if err := netlink.AddrAdd(link, wanted); err != nil {
		return fmt.Errorf("give device %q address %s: %w", name, address, err)
	}
	return nil
}

// setSysctls lets the host forward, and lets connections from 127.0.0.1 to a host port leave by the bridge; package nat
// keeps pods from using the latter the other way round.
func (a *Agent) setSysctls() error {
	for _, name := range []string{
		"net/ipv4/ip_forward",
		"net/ipv4/conf/" + a.Bridge + "/forwarding",
		"net/ipv4/conf/" + a.Bridge + "/route_localnet",
	} {
		path := filepath.Join("/proc/sys", name)
		value, err := os.ReadFile(path)
		if err == nil && string(bytes.TrimSpace(value)) != "1" {
			err = os.WriteFile(path, []byte("1"), 0o644)
		}
		if err != nil {
			return fmt.Errorf("set sysctl: %w", err)
		}
	}
	return nil
}

// findDevice returns nil for a device that does not exist.
func findDevice(name string) (netlink.Link, error) {
	link, err := netlinksafe.LinkByName(name)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find device %q: %w", name, err)
	}
	return link, nil
}
