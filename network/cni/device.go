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
	"golang.org/x/sys/unix"
)

const devicePrefix = "pod"

// deviceName returns the name of the host end of a pod's veth device. The name has 15 characters,
// the maximum on Linux, and is the same in each call for the pod.
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

// HardwareAddress derives the MAC address of a pod or of the bridge from its IPv4 address. As a
// result, neighbor cache entries stay valid when an address is reused or the bridge is recreated.
// The prefix 0a:58 is in the locally administered range.
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

// createVeth creates a pod's veth device. It configures the pod's end in the pod's namespace, and
// makes the host end a port of the bridge.
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
		return configure(c.args.IfName, c.config.ends(l), HardwareAddress(Gateway(c.config.PodCIDR)))
	})
	if err != nil {
		return host, pod, err
	}
	return host, pod, c.config.attachToBridge(l, bridge)
}

// configure configures the pod's end of the veth device in the pod's namespace.
func configure(iface string, addresses []ends, gatewayMAC net.HardwareAddr) error {
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
	if err := SetIPv6(iface, len(addresses) > 1); err != nil {
		return err
	}
	for _, e := range addresses {
		if err := netlink.AddrAdd(link, &netlink.Addr{IPNet: hostNet(e.address), Flags: AddressFlags(e.address)}); err != nil {
			return fmt.Errorf("set address of device %q to %s: %w", iface, e.address, err)
		}
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("set device %q up: %w", iface, err)
	}
	for _, e := range addresses {
		if err := netlink.NeighSet(neighbor(link, e.gateway, gatewayMAC)); err != nil {
			return fmt.Errorf("set neighbor %s of device %q: %w", e.gateway, iface, err)
		}
		for _, route := range []*netlink.Route{
			{LinkIndex: link.Attrs().Index, Scope: netlink.SCOPE_LINK, Dst: hostNet(e.gateway)},
			{LinkIndex: link.Attrs().Index, Gw: e.gateway.AsSlice(), Dst: allAddresses(e.gateway)},
		} {
			if err := netlink.RouteAdd(route); err != nil {
				return fmt.Errorf("add route through %s: %w", e.gateway, err)
			}
		}
	}
	return nil
}

// SetIPv6 enables or disables IPv6 on a device in this network namespace. The device receives
// neither a link-local address nor addresses or routes from router advertisements. Therefore, it is
// reachable only at the addresses that the platform assigns. On a host without IPv6, SetIPv6 can
// only disable IPv6.
func SetIPv6(device string, enabled bool) error {
	settings := []struct{ name, value string }{{"disable_ipv6", "1"}}
	if enabled {
		const withoutAddress = "1" // IN6_ADDR_GEN_MODE_NONE
		settings = []struct{ name, value string }{{"addr_gen_mode", withoutAddress}, {"accept_ra", "0"}, {"disable_ipv6", "0"}}
	}
	for _, setting := range settings {
		name := "net/ipv6/conf/" + device + "/" + setting.name
		present, err := sysctl.Sysctl(name)
		if err == nil && present != setting.value {
			_, err = sysctl.Sysctl(name, setting.value)
		}
		if errors.Is(err, fs.ErrNotExist) && !enabled {
			return nil
		}
		if err != nil {
			return fmt.Errorf("set sysctl %s of device %q: %w", setting.name, device, err)
		}
	}
	return nil
}

// AddressFlags returns the flags for an address that no other machine on the link can have. For
// IPv6, the flags disable duplicate address detection.
func AddressFlags(address netip.Addr) int {
	if address.Is6() {
		return unix.IFA_F_NODAD
	}
	return 0
}

// hostNet returns the network that contains only address.
func hostNet(address netip.Addr) *net.IPNet {
	return &net.IPNet{IP: address.AsSlice(), Mask: net.CIDRMask(address.BitLen(), address.BitLen())}
}

// removeVeth removes a pod's veth device, which has one end on the host and the other end in the
// pod.
func removeVeth(device string) error {
	err := ip.DelLinkByName(device)
	if err != nil && !errors.Is(err, ip.ErrLinkNotFound) {
		return fmt.Errorf("remove device %q: %w", device, err)
	}
	return nil
}

// deviceExists reports whether a pod's device exists. The kernel removes the device together with
// the pod's namespace.
func deviceExists(device string) bool {
	_, err := netlinksafe.LinkByName(device)
	return !errors.As(err, &netlink.LinkNotFoundError{})
}
