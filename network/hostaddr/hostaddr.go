// Package hostaddr finds the addresses of this machine: the one that the node and the API server announce, and all that
// a certificate has to name. It reads the kernel's tables and, except for AssignOffline, changes nothing.
package hostaddr

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/containernetworking/plugins/pkg/netlinksafe"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// ErrNoAddress tells that the machine has no address that another machine could use: it is offline.
var ErrNoAddress = errors.New("no device has a global IPv4 address: connect the machine, or set nodeIP in node-config.yaml")

// OfflineAddress is what AssignOffline gives a machine without any address. It is from the documentation range
// TEST-NET-1 (RFC 5737), which no network routes, and unlike a loopback or link-local address Kubernetes accepts it as a node's and as
// the API server's.
var OfflineAddress = netip.AddrFrom4([4]byte{192, 0, 2, 1})

// HostAddress returns the IPv4 address by which others reach this machine: the preferred one, if it is not empty; else
// the one that the default route uses; else the first global one, physical devices before virtual ones. Devices named in
// skip are passed over: name the bridge and whatever else the cluster makes itself.
//
// A preferred address that no device has is an error. Without any address the error is ErrNoAddress; the caller then
// calls AssignOffline, so that a machine works offline, too.
func HostAddress(preferred string, skip ...string) (netip.Addr, error) {
	devices, err := list(skip)
	if err != nil {
		return netip.Addr{}, err
	}
	if preferred != "" {
		return chosen(preferred, devices)
	}
	byDefault, err := defaultDevice()
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

func chosen(preferred string, devices []device) (netip.Addr, error) {
	address, err := netip.ParseAddr(preferred)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("read host address %q: %w", preferred, err)
	}
	for _, d := range devices {
		if slices.Contains(d.addresses, address) {
			return address, nil
		}
	}
	return netip.Addr{}, fmt.Errorf("find host address %q: no device has it", preferred)
}

// HostAddresses returns every address of the machine that a certificate should name, loopback first: all but
// link-local ones and those of devices named in skip. When the kernel's table cannot be read it returns loopback.
func HostAddresses(skip ...string) []netip.Addr {
	all := []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}
	devices, err := list(skip)
	if err != nil {
		return all
	}
	for _, d := range devices {
		for _, address := range d.addresses {
			if address.IsGlobalUnicast() && !slices.Contains(all, address) {
				all = append(all, address)
			}
		}
	}
	return all
}

// AssignOffline gives a machine without any address OfflineAddress, on a device of its own with the given name, and
// returns it. The device is a bridge without ports, which pods need anyway; not every kernel has dummy devices. Calling
// it again is harmless. The device goes with agent.Cleanup, or when the machine stops.
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
		return netip.Addr{}, fmt.Errorf("make device %q: %w", name, err)
	}
	if err := netlink.AddrReplace(link, &netlink.Addr{IPNet: netlink.NewIPNet(OfflineAddress.AsSlice())}); err != nil {
		return netip.Addr{}, fmt.Errorf("give device %q address %s: %w", name, OfflineAddress, err)
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return netip.Addr{}, fmt.Errorf("set device %q up: %w", name, err)
	}
	return OfflineAddress, nil
}

// MTU returns the MTU in bytes of the default route's device, which pods must not exceed; 1500 without such a route.
func MTU() (int, error) {
	index, err := defaultDevice()
	if err != nil || index == 0 {
		return 1500, err
	}
	link, err := netlink.LinkByIndex(index)
	if err != nil {
		return 0, fmt.Errorf("find device of the default route: %w", err)
	}
	return link.Attrs().MTU, nil
}

// device is a device that is up, with its addresses in the kernel's order.
type device struct {
	index     int
	virtual   bool
	addresses []netip.Addr
}

// rank orders devices by how likely others reach the machine there.
func (d device) rank(defaultDevice int) int {
	switch {
	case d.index == defaultDevice:
		return 0
	case !d.virtual:
		return 1
	}
	return 2
}

func list(skip []string) ([]device, error) {
	links, err := netlinksafe.LinkList()
	if err != nil {
		return nil, fmt.Errorf("list devices: %w", err)
	}
	var devices []device
	for _, link := range links {
		attrs := link.Attrs()
		if attrs.RawFlags&unix.IFF_UP == 0 || slices.Contains(skip, attrs.Name) {
			continue
		}
		addresses, err := netlinksafe.AddrList(link, netlink.FAMILY_ALL)
		if err != nil {
			return nil, fmt.Errorf("list addresses of device %q: %w", attrs.Name, err)
		}
		d := device{index: attrs.Index, virtual: isVirtual(link)}
		for _, a := range addresses {
			if address, ok := netip.AddrFromSlice(a.IP); ok {
				d.addresses = append(d.addresses, address.Unmap())
			}
		}
		devices = append(devices, d)
	}
	return devices, nil
}

// isVirtual tells devices that other software makes for its own guests from those that lead out of the machine.
func isVirtual(link netlink.Link) bool {
	switch link.Type() {
	case "bridge", "veth", "dummy", "tuntap":
		return true
	}
	return false
}

// defaultDevice returns the index of the device of the IPv4 default route with the lowest metric, or 0.
func defaultDevice() (int, error) {
	routes, err := netlinksafe.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Table: unix.RT_TABLE_MAIN}, netlink.RT_FILTER_TABLE)
	if err != nil {
		return 0, fmt.Errorf("list routes: %w", err)
	}
	index, metric := 0, 0
	for _, r := range routes {
		isDefault := r.Dst == nil || r.Dst.IP.IsUnspecified()
		if isDefault && r.LinkIndex != 0 && (index == 0 || r.Priority < metric) {
			index, metric = r.LinkIndex, r.Priority
		}
	}
	return index, nil
}
