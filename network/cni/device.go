package cni

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"strings"

	"github.com/containernetworking/plugins/pkg/ip"
	"github.com/containernetworking/plugins/pkg/netlinksafe"
	"github.com/containernetworking/plugins/pkg/ns"
	"github.com/containernetworking/plugins/pkg/utils/sysctl"
	"github.com/vishvananda/netlink"
)

const devicePrefix = "pod"

// deviceName returns the name of the host end of a pod's veth. It has 15 characters, the maximum on
// Linux, and is the same in every call for that pod.
func deviceName(container, iface string) string {
	sum := sha256.Sum256([]byte(container + "/" + iface))
	return devicePrefix + hex.EncodeToString(sum[:])[:15-len(devicePrefix)]
}

// IsPodDevice reports whether a device has the type and the name format of a pod's host device.
func IsPodDevice(link netlink.Link) bool {
	digits, ok := strings.CutPrefix(link.Attrs().Name, devicePrefix)
	_, err := hex.DecodeString(digits)
	return ok && err == nil && len(digits) == 15-len(devicePrefix) && link.Type() == "veth"
}

// HardwareAddress derives the MAC address of a pod or of the bridge from its IPv4 address, so that
// neighbours' cache entries stay valid when an address is reused or the bridge is recreated. 0a:58
// is in the range for local administration.
func HardwareAddress(address netip.Addr) net.HardwareAddr {
	a := address.As4()
	return net.HardwareAddr{0x0a, 0x58, a[0], a[1], a[2], a[3]}
}

func findBridge(name string) (netlink.Link, error) {
	link, err := netlinksafe.LinkByName(name)
	if err != nil {
		return nil, fmt.Errorf("find bridge %q: %w", name, err)
	}
	if link.Type() != "bridge" {
		return nil, fmt.Errorf("find bridge %q: the device is a %s", name, link.Type())
	}
	return link, nil
}

// createVeth creates the veth: one end is configured in the pod's namespace, the other is a port of
// the bridge.
func (c *call) createVeth(bridge netlink.Link, l lease) (host, pod net.Interface, err error) {
	mtu := c.config.MTU
	if mtu == 0 {
		mtu = bridge.Attrs().MTU
	}
	err = ns.WithNetNSPath(c.args.Netns, func(hostNS ns.NetNS) error {
		host, pod, err = ip.SetupVethWithName(c.args.IfName, c.device, mtu, HardwareAddress(l.Address).String(), hostNS)
		if err != nil {
			return fmt.Errorf("create veth %q and %q: %w", c.device, c.args.IfName, err)
		}
		return configure(c.args.IfName, l.Address, Gateway(c.config.PodCIDR))
	})
	if err != nil {
		return host, pod, err
	}
	return host, pod, c.config.attachToBridge(l, bridge)
}

// configure configures the pod's end in the pod's namespace.
func configure(iface string, address, gateway netip.Addr) error {
	lo, err := netlinksafe.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("find device lo: %w", err)
	}
	if err := netlink.LinkSetUp(lo); err != nil {
		return fmt.Errorf("set device lo up: %w", err)
	}
	link, err := netlinksafe.LinkByName(iface)
	if err != nil {
		return fmt.Errorf("find device %q: %w", iface, err)
	}
	// Pods have no IPv6 address. A host without IPv6 lacks the setting.
	if _, err := sysctl.Sysctl("net/ipv6/conf/"+iface+"/disable_ipv6", "1"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("disable IPv6 of device %q: %w", iface, err)
	}
	if err := netlink.AddrAdd(link, &netlink.Addr{IPNet: hostNet(address)}); err != nil {
		return fmt.Errorf("set address of device %q to %s: %w", iface, address, err)
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("set device %q up: %w", iface, err)
	}
	if err := netlink.NeighSet(neighbor(link, gateway)); err != nil {
		return fmt.Errorf("set neighbor %s of device %q: %w", gateway, iface, err)
	}
	for _, route := range []*netlink.Route{
		{LinkIndex: link.Attrs().Index, Scope: netlink.SCOPE_LINK, Dst: hostNet(gateway)},
		{LinkIndex: link.Attrs().Index, Gw: gateway.AsSlice()},
	} {
		if err := netlink.RouteAdd(route); err != nil {
			return fmt.Errorf("add route through %s: %w", gateway, err)
		}
	}
	return nil
}

// hostNet returns the network that contains only address.
func hostNet(address netip.Addr) *net.IPNet {
	return &net.IPNet{IP: address.AsSlice(), Mask: net.CIDRMask(address.BitLen(), address.BitLen())}
}

// removeVeth removes a pod's device, which also removes the pod's end.
func removeVeth(device string) error {
	err := ip.DelLinkByName(device)
	if err != nil && !errors.Is(err, ip.ErrLinkNotFound) {
		return fmt.Errorf("remove device %q: %w", device, err)
	}
	return nil
}

// deviceExists reports whether a pod's device exists. The kernel removes it with the pod's
// namespace.
func deviceExists(device string) bool {
	_, err := netlinksafe.LinkByName(device)
	return !errors.As(err, &netlink.LinkNotFoundError{})
}
