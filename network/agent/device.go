package agent

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/containernetworking/plugins/pkg/netlinksafe"
	"github.com/vishvananda/netlink"

	"github.com/slipway-platform/slipway/network/cni"
	"github.com/slipway-platform/slipway/network/hostaddr"
	"github.com/slipway-platform/slipway/network/ipfamily"
	"github.com/slipway-platform/slipway/network/vxlan"
)

// ensureDevices ensures that the bridge exists and has the first address of the subnet, and that
// the DNS server's device exists. The DNS server's device is a bridge without ports: not every
// kernel supports dummy devices, whereas pods need bridges anyway.
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

// mtu returns the MTU of pod devices.
func (a *Agent) mtu() (int, error) {
	if a.MTU != 0 {
		return a.MTU, nil
	}
	mtu, err := a.pathMTU()
	if err == nil && a.DualStack.Enabled() && mtu < minIPv6MTU {
		return 0, fmt.Errorf("the MTU of pods is %d, because of the device of the default route, but pods have IPv6 addresses, which need at least %d; "+
			"raise the MTU of that device, or remove the IPv6 network from networkConfig.clusterNetworks of master-config.yaml", mtu, minIPv6MTU)
	}
	return mtu, err
}

// minIPv6MTU is the minimum MTU for IPv6 (RFC 8200, 5).
const minIPv6MTU = 1280

// pathMTU returns the size, in bytes, of the largest packet that fits on the path between hosts.
func (a *Agent) pathMTU() (int, error) {
	mtu, err := hostaddr.MTU()
	if a.usesVXLAN() {
		mtu -= vxlan.Overhead
	}
	return mtu, err
}

// ensureSecond assigns the first address of the IPv6 subnet to the bridge, if pods have IPv6
// addresses. The prefix of the bridge's address contains only as many addresses as the IPv4 subnet,
// because pods use no other addresses. With the prefix of the whole subnet, packets to its up to
// 2^64 unused addresses would fill the host's neighbor table.
func (a *Agent) ensureSecond(subnet netip.Prefix) error {
	if !a.DualStack.Enabled() {
		return nil
	}
	second := a.DualStack.Subnet(subnet)
	if !second.IsValid() {
		slog.Error("pods of this node have no IPv6 addresses; remove the node, and let it join again", "podCIDR", subnet, "networks", a.DualStack.IPv4)
		return nil
	}
	link, err := netlinksafe.LinkByName(a.Bridge)
	if err != nil {
		return fmt.Errorf("find bridge %q: %w", a.Bridge, err)
	}
	return setAddress(link, netip.PrefixFrom(cni.Gateway(second), podBits(second, subnet)))
}

// podBits returns the length of the prefix that the pods' IPv6 addresses share.
func podBits(second, subnet netip.Prefix) int {
	return second.Addr().BitLen() - (subnet.Addr().BitLen() - subnet.Bits())
}

// ensureBridge ensures that a bridge exists, is up and has exactly one IPv4 address. The bridge's
// MAC address is derived from this IPv4 address. Otherwise, the MAC address would change when ports
// are added or removed.
func ensureBridge(name string, address netip.Prefix, mtu int) error {
	mac := cni.HardwareAddress(address.Addr())
	link, err := findDevice(name)
	if err != nil {
		return err
	}
	if link == nil {
		// Set the MTU later: a bridge that is created with an MTU changes the MTU when its last
		// port is removed.
		attrs := netlink.NewLinkAttrs()
		attrs.Name, attrs.HardwareAddr = name, mac
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

// setAddress makes an address the device's only address in its IP family. It removes all other
// addresses, such as an address in an earlier subnet.
func setAddress(link netlink.Link, address netip.Prefix) error {
	name := link.Attrs().Name
	present, err := netlinksafe.AddrList(link, ipfamily.Of(address.Addr()).Netlink())
	if err != nil {
		return fmt.Errorf("list addresses of device %q: %w", name, err)
	}
	desired := &netlink.Addr{
		IPNet: &net.IPNet{IP: address.Addr().AsSlice(), Mask: net.CIDRMask(address.Bits(), address.Addr().BitLen())},
		Flags: cni.AddressFlags(address.Addr()),
	}
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
// through the bridge. Package nat prevents pods from using that route in the other direction.
// Unless pods have IPv6 addresses, setSysctls disables IPv6 on the bridge, so that pods cannot
// reach the host over IPv6.
func (a *Agent) setSysctls() error {
	if a.DualStack.Enabled() {
		if _, err := os.Stat(ipv6Settings); err != nil {
			return errors.New("networkConfig.clusterNetworks of master-config.yaml has an IPv6 network, but the kernel of this host has no IPv6; " +
				"enable IPv6 (boot option ipv6.disable=0), or remove the network")
		}
		if err := forwardIPv6(a.SysctlRecord); err != nil {
			return err
		}
	}
	if err := forwardIPv4(a.SysctlRecord); err != nil {
		return err
	}
	names := []string{
		"net/ipv4/conf/" + a.Bridge + "/forwarding",
		"net/ipv4/conf/" + a.Bridge + "/route_localnet",
	}
	for _, name := range names {
		if err := setSysctl(filepath.Join("/proc/sys", name), "1"); err != nil {
			return err
		}
	}
	return cni.SetIPv6(a.Bridge, a.DualStack.Enabled())
}

// findDevice returns a device, or nil if the device does not exist.
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
