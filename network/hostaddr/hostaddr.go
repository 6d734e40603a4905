// Package hostaddr determines the addresses of this host: the address that the node and the API
// server advertise, and the addresses for certificates. It reads the kernel's tables and changes
// nothing, except in AssignOffline.
package hostaddr

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/containernetworking/plugins/pkg/netlinksafe"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// ErrNoAddress means that the host is offline: none of its addresses is reachable from another
// host.
var ErrNoAddress = errors.New("no device has a global IPv4 address; connect the machine to a network, or set nodeIP in node-config.yaml")

// OfflineAddress is the address that AssignOffline assigns. It is from the documentation range
// TEST-NET-1 (RFC 5737), which is not routed. Unlike a loopback or link-local address, it is valid
// in Kubernetes as the address of a node and of the API server.
var OfflineAddress = netip.AddrFrom4([4]byte{192, 0, 2, 1})

// EgressScope is the scope (RT_SCOPE_SITE) that marks projects' egress addresses. An egress address
// is never used as the host's address.
const EgressScope = unix.RT_SCOPE_SITE

// HostAddress returns the IPv4 address at which other hosts reach this host. If preferred is not
// empty, HostAddress returns it. Otherwise, it returns the address of the default route's device
// or, if there is none, the first global address, on physical devices before virtual ones. Devices
// in skip are ignored: list the bridge and other devices that the cluster creates.
//
// HostAddress returns an error if no device has the preferred address. If the host has no address,
// the error is ErrNoAddress; the caller can then use AssignOffline, so that the host works offline.
func HostAddress(preferred string, skip ...string) (netip.Addr, error) {
	devices, err := listDevices(skip)
	if err != nil {
		return netip.Addr{}, err
	}
	if preferred != "" {
		return checkPreferred(preferred, devices)
	}
	byDefault, err := defaultDevice(netlink.FAMILY_V4)
	if err != nil {
		return netip.Addr{}, err
	}
	slices.SortStableFunc(devices, func(a, b device) int { return a.rank(byDefault) - b.rank(byDefault) })
	for _, d := range devices {
		for _, address := range d.addresses {
			if address.Is4() && address.IsGlobalUnicast() {
				return address, nil
			}
		}
	}
	return netip.Addr{}, ErrNoAddress
}

func checkPreferred(preferred string, devices []device) (netip.Addr, error) {
	address, err := netip.ParseAddr(preferred)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("parse host address %q: %w", preferred, err)
	}
	for _, d := range devices {
		if slices.Contains(d.addresses, address) {
			return address, nil
		}
	}
	return netip.Addr{}, fmt.Errorf("find host address %q: no device has it", preferred)
}

// Second returns the global IPv6 address of the device that has the IPv4 address first, or an
// invalid address if the device has none. If first is OfflineAddress, Second uses the device of the
// IPv6 default route. If there is no IPv6 default route, it uses the first device in the order that
// HostAddress uses.
func Second(first netip.Addr, skip ...string) (netip.Addr, error) {
	devices, err := listDevices(skip)
	if err != nil {
		return netip.Addr{}, err
	}
	if first == OfflineAddress {
		byDefault, err := defaultDevice(netlink.FAMILY_V6)
		if err != nil {
			return netip.Addr{}, err
		}
		slices.SortStableFunc(devices, func(a, b device) int { return a.rank(byDefault) - b.rank(byDefault) })
	} else {
		devices = slices.DeleteFunc(devices, func(d device) bool { return !slices.Contains(d.addresses, first) })
	}
	for _, d := range devices {
		for _, address := range d.addresses {
			if address.Is6() && address.IsGlobalUnicast() {
				return address, nil
			}
		}
	}
	return netip.Addr{}, nil
}

// HostAddresses returns all addresses of the host for use in a certificate, loopback addresses
// first. It omits link-local addresses, and the addresses of devices in skip. If the kernel's
// tables cannot be read, it returns only the loopback addresses.
func HostAddresses(skip ...string) []netip.Addr {
	addresses := []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}
	devices, err := listDevices(skip)
	if err != nil {
		return addresses
	}
	for _, d := range devices {
		for _, address := range d.addresses {
			if address.IsGlobalUnicast() && !slices.Contains(addresses, address) {
				addresses = append(addresses, address)
			}
		}
	}
	return addresses
}

// AssignOffline assigns OfflineAddress to a host without an address, on a new device with the given
// name. The device is a bridge without ports, because not every kernel supports dummy devices,
// whereas pods need bridges anyway. AssignOffline is idempotent. The device is removed by
// agent.Cleanup or by a reboot.
func AssignOffline(name string) (netip.Addr, error) {
	link, err := netlinksafe.LinkByName(name)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		attrs := netlink.NewLinkAttrs()
		attrs.Name = name
		if err = netlink.LinkAdd(&netlink.Bridge{LinkAttrs: attrs}); err == nil {
			link, err = netlinksafe.LinkByName(name)
		}
	}
	if err != nil {
		return netip.Addr{}, fmt.Errorf("create device %q: %w", name, err)
	}
	if err := netlink.AddrReplace(link, &netlink.Addr{IPNet: netlink.NewIPNet(OfflineAddress.AsSlice())}); err != nil {
		return netip.Addr{}, fmt.Errorf("set address of device %q to %s: %w", name, OfflineAddress, err)
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return netip.Addr{}, fmt.Errorf("set device %q up: %w", name, err)
	}
	return OfflineAddress, nil
}

// MTU returns the MTU, in bytes, of the IPv4 default route's device or, if there is no such route,
// of the IPv6 default route's device. Without a default route, it returns 1500. The MTU of pods
// must not exceed this value.
func MTU() (int, error) {
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		if link, err := deviceOfDefault(family); err != nil || link != nil {
			if err != nil {
				return 1500, err
			}
			return link.Attrs().MTU, nil
		}
	}
	return 1500, nil
}

// DefaultDevice returns the device of the IPv4 default route, or nil if there is no IPv4 default
// route.
func DefaultDevice() (netlink.Link, error) { return deviceOfDefault(netlink.FAMILY_V4) }

func deviceOfDefault(family int) (netlink.Link, error) {
	index, err := defaultDevice(family)
	if err != nil || index == 0 {
		return nil, err
	}
	link, err := netlink.LinkByIndex(index)
	if err != nil {
		return nil, fmt.Errorf("find default route device: %w", err)
	}
	return link, nil
}

// device is a device that is up, with its addresses in the kernel's order. addresses omits IPv6
// addresses that change over time: temporary and deprecated addresses.
type device struct {
	index     int
	virtual   bool
	addresses []netip.Addr
}

// rank orders devices by the probability that other hosts reach this host through them.
func (d device) rank(defaultDevice int) int {
	switch {
	case d.index == defaultDevice:
		return 0
	case !d.virtual:
		return 1
	}
	return 2
}

// ByDevice returns the addresses of all devices, keyed by device index. It sends a single request
// to the kernel. A host has a device for each pod. One request per device would be slower, because
// the kernel responds to each request with the addresses of all devices.
func ByDevice() (map[int][]netlink.Addr, error) {
	list, err := netlinksafe.AddrList(nil, netlink.FAMILY_ALL)
	if err != nil {
		return nil, fmt.Errorf("list addresses: %w", err)
	}
	addresses := map[int][]netlink.Addr{}
	for _, address := range list {
		addresses[address.LinkIndex] = append(addresses[address.LinkIndex], address)
	}
	return addresses, nil
}

func listDevices(skip []string) ([]device, error) {
	links, err := netlinksafe.LinkList()
	if err != nil {
		return nil, fmt.Errorf("list devices: %w", err)
	}
	addresses, err := ByDevice()
	if err != nil {
		return nil, err
	}
	var devices []device
	for _, link := range links {
		attrs := link.Attrs()
		if attrs.RawFlags&unix.IFF_UP == 0 || slices.Contains(skip, attrs.Name) {
			continue
		}
		d := device{index: attrs.Index, virtual: isVirtual(link)}
		for _, a := range addresses[attrs.Index] {
			address, ok := netip.AddrFromSlice(a.IP)
			address = address.Unmap()
			changes := address.Is6() && a.Flags&(unix.IFA_F_TEMPORARY|unix.IFA_F_DEPRECATED) != 0
			if ok && a.Scope != EgressScope && !changes {
				d.addresses = append(d.addresses, address)
			}
		}
		devices = append(devices, d)
	}
	return devices, nil
}

// isVirtual reports whether a device has a type that usually connects containers or virtual
// machines, rather than the host, to a network.
func isVirtual(link netlink.Link) bool {
	switch link.Type() {
	case "bridge", "veth", "dummy", "tuntap":
		return true
	}
	return false
}

// defaultDevice returns the device index of an IP family's default route with the lowest metric, or
// 0 if there is no default route.
func defaultDevice(family int) (int, error) {
	routes, err := netlinksafe.RouteListFiltered(family, &netlink.Route{Table: unix.RT_TABLE_MAIN}, netlink.RT_FILTER_TABLE)
	if err != nil {
		return 0, fmt.Errorf("list routes: %w", err)
	}
	index, metric := 0, 0
	for _, r := range routes {
		isDefault := r.Dst == nil || isEverything(r.Dst)
		if isDefault && r.LinkIndex != 0 && (index == 0 || r.Priority < metric) {
			index, metric = r.LinkIndex, r.Priority
		}
	}
	return index, nil
}

// isEverything reports whether a network contains all addresses.
func isEverything(network *net.IPNet) bool {
	bits, _ := network.Mask.Size()
	return bits == 0 && network.IP.IsUnspecified()
}
