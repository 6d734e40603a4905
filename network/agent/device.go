package agent

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/containernetworking/plugins/pkg/netlinksafe"
	"github.com/vishvananda/netlink"

	"github.com/slipway-platform/slipway/network/cni"
	"github.com/slipway-platform/slipway/network/hostaddr"
	"github.com/slipway-platform/slipway/network/vxlan"
)

// ensureDevices ensures that the bridge, with the first address of the subnet, and the device of
// the DNS server exist. The latter is a bridge without ports, because not every kernel has dummy
// devices but pods need bridges anyway.
func (a *Agent) ensureDevices(subnet netip.Prefix) error {
	mtu, err := a.mtu()
	if err != nil {
		return err
	}
	gateway := cni.Gateway(subnet)
	if err := ensureBridge(a.Bridge, netip.PrefixFrom(gateway, subnet.Bits()), mtu); err != nil {
		return err
	}
	if !a.DNSIP.IsValid() {
		return nil
	}
	return ensureBridge(a.DNSDevice, netip.PrefixFrom(a.DNSIP, a.DNSIP.BitLen()), 1500)
}

// mtu returns the MTU of pods.
func (a *Agent) mtu() (int, error) {
	if a.MTU != 0 {
		return a.MTU, nil
	}
	return a.pathMTU()
}

// pathMTU returns the size of the largest packet that fits between hosts.
func (a *Agent) pathMTU() (int, error) {
	mtu, err := hostaddr.MTU()
	if a.usesVXLAN() {
		mtu -= vxlan.Overhead
	}
	return mtu, err
}

// ensureBridge ensures that a bridge exists, is up and has exactly one IPv4 address. Its MAC
// address is derived from that address; otherwise, it would change with the ports.
func ensureBridge(name string, address netip.Prefix, mtu int) error {
	mac := cni.HardwareAddress(address.Addr())
	link, err := findDevice(name)
	if err != nil {
		return err
	}
	if link == nil {
		attrs := netlink.NewLinkAttrs()
		attrs.Name, attrs.MTU, attrs.HardwareAddr = name, mtu, mac
		if err := netlink.LinkAdd(&netlink.Bridge{LinkAttrs: attrs}); err != nil {
			return fmt.Errorf("create bridge %q: %w", name, err)
		}
		if link, err = netlinksafe.LinkByName(name); err != nil {
			return fmt.Errorf("find bridge %q: %w", name, err)
		}
	}
	if link.Type() != "bridge" {
		return fmt.Errorf("create bridge %q: the name is in use by a device of type %q", name, link.Type())
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

// setAddress sets the only IPv4 address of a device. It removes others, such as that of an earlier
// subnet.
func setAddress(link netlink.Link, address netip.Prefix) error {
	name := link.Attrs().Name
	present, err := netlinksafe.AddrList(link, netlink.FAMILY_V4)
	if err != nil {
		return fmt.Errorf("list addresses of device %q: %w", name, err)
	}
	desired := &netlink.Addr{IPNet: &net.IPNet{IP: address.Addr().AsSlice(), Mask: net.CIDRMask(address.Bits(), 32)}}
	exists := false
	for _, addr := range present {
		if addr.Equal(*desired) {
			exists = true
			continue
		}
		if err := netlink.AddrDel(link, &addr); err != nil {
			return fmt.Errorf("remove address %s of device %q: %w", addr.IPNet, name, err)
		}
	}
	if exists {
		return nil
	}
	if err := netlink.AddrAdd(link, desired); err != nil {
		return fmt.Errorf("set address of device %q to %s: %w", name, address, err)
	}
	return nil
}

// setSysctls enables forwarding on the host, and routes connections from 127.0.0.1 to a host port
// through the bridge. Package nat prevents pods from using the latter in the other direction. It
// disables IPv6 on the bridge, so that the host has no address there that only IPv6 reaches.
func (a *Agent) setSysctls() error {
	ipv6 := "net/ipv6/conf/" + a.Bridge + "/disable_ipv6"
	for _, name := range []string{
		"net/ipv4/ip_forward",
		"net/ipv4/conf/" + a.Bridge + "/forwarding",
		"net/ipv4/conf/" + a.Bridge + "/route_localnet",
		ipv6,
	} {
		path := filepath.Join("/proc/sys", name)
		value, err := os.ReadFile(path)
		if name == ipv6 && errors.Is(err, fs.ErrNotExist) {
			continue // the kernel has no IPv6
		}
		if err == nil && string(bytes.TrimSpace(value)) != "1" {
			err = os.WriteFile(path, []byte("1"), 0o644)
		}
		if err != nil {
			return fmt.Errorf("set sysctl: %w", err)
		}
	}
	return nil
}

// findDevice returns nil if the device does not exist.
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
