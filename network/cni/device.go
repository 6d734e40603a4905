package cni

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
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

// deviceName is the name of the host end of a pod's veth: 15 characters, the most that Linux allows, and the same for
// every call about that pod.
func deviceName(container, iface string) string {
	sum := sha256.Sum256([]byte(container + "/" + iface))
	return devicePrefix + hex.EncodeToString(sum[:])[:15-len(devicePrefix)]
}

// IsPodDevice tells whether a device has the kind and the form of name that the plug-in gives the host ends of pods.
func IsPodDevice(link netlink.Link) bool {
	digits, ok := strings.CutPrefix(link.Attrs().Name, devicePrefix)
	_, err := hex.DecodeString(digits)
	return ok && err == nil && len(digits) == 15-len(devicePrefix) && link.Type() == "veth"
}

// HardwareAddress derives the MAC address of a pod or of the bridge from its IPv4 address, so that a neighbour's cache
// entry stays true when an address is recycled or the bridge is made anew. 0a:58 is in the range for local administration.
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

// connect makes the veth: one end configured in the pod's namespace, the other a port of the bridge.
func (c *call) connect(bridge netlink.Link, l lease) (host, pod net.Interface, err error) {
	mtu := c.config.MTU
	if mtu == 0 {
		mtu = bridge.Attrs().MTU
	}
	err = ns.WithNetNSPath(c.args.Netns, func(hostNS ns.NetNS) error {
		host, pod, err = ip.SetupVethWithName(c.args.IfName, c.device, mtu, HardwareAddress(l.Address).String(), hostNS)
		if err != nil {
			return fmt.Errorf("make device pair %q and %q: %w", c.device, c.args.IfName, err)
		}
		return configure(c.args.IfName, l.Address, Gateway(c.config.PodCIDR))
	})
	if err != nil {
		return host, pod, err
	}
	return host, pod, c.config.plug(c.device, bridge)
}

// plug makes a pod's device a port of the bridge.
func (c Config) plug(device string, bridge netlink.Link) error {
	link, err := netlinksafe.LinkByName(device)
	if err != nil {
		return fmt.Errorf("find device %q: %w", device, err)
	}
	if err := netlink.LinkSetMaster(link, bridge); err != nil {
		return fmt.Errorf("plug device %q into bridge %q: %w", device, c.Bridge, err)
	}
	if err := netlink.LinkSetHairpin(link, c.Hairpin); err != nil {
		return fmt.Errorf("set hairpin of device %q: %w", device, err)
	}
	return nil
}

// configure sets up the pod's side, in the pod's namespace.
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
	// The kernel then announces the address by ARP as soon as the device is up.
	if _, err := sysctl.Sysctl("net/ipv4/conf/"+iface+"/arp_notify", "1"); err != nil {
		return fmt.Errorf("set arp_notify of device %q: %w", iface, err)
	}
	if err := netlink.AddrAdd(link, &netlink.Addr{IPNet: hostNet(address)}); err != nil {
		return fmt.Errorf("give device %q address %s: %w", iface, address, err)
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("set device %q up: %w", iface, err)
	}
	for _, route := range []*netlink.Route{
		{LinkIndex: link.Attrs().Index, Scope: netlink.SCOPE_LINK, Dst: hostNet(gateway)},
		{LinkIndex: link.Attrs().Index, Gw: gateway.AsSlice()},
	} {
		if err := netlink.RouteAdd(route); err != nil {
			return fmt.Errorf("add route by %s: %w", gateway, err)
		}
	}
	return nil
}

// hostNet is an address as a network of its own.
func hostNet(address netip.Addr) *net.IPNet {
	return &net.IPNet{IP: address.AsSlice(), Mask: net.CIDRMask(address.BitLen(), address.BitLen())}
}

// unplug removes a pod's device, and with it the pod's end.
func unplug(device string) error {
	err := ip.DelLinkByName(device)
	if err != nil && !errors.Is(err, ip.ErrLinkNotFound) {
		return fmt.Errorf("remove device %q: %w", device, err)
	}
	return nil
}

// alive tells whether a pod's device exists; it ends with the pod's namespace.
func alive(device string) bool {
	_, err := netlinksafe.LinkByName(device)
	return !errors.As(err, &netlink.LinkNotFoundError{})
}
