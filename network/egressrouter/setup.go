package egressrouter

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/slipway-platform/slipway/internal/macvlan"
	"github.com/slipway-platform/slipway/network/ipfamily"
)

const (
	// clusterDevice is the pod's device in the cluster network.
	clusterDevice = "eth0"
	// clusterMark marks connections that arrived through clusterDevice, and their responses.
	// clusterTable is the routing table for these responses.
	clusterMark  = 1
	clusterTable = 100
)

// apply configures the pod's network. It is idempotent, because the container can restart.
func (s Settings) apply() error {
	outside, err := netlink.LinkByName(macvlan.Device)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		return fmt.Errorf(`the pod has no device %s: it needs the annotation %s: "true"`, macvlan.Device, macvlan.Annotation)
	}
	if err != nil {
		return fmt.Errorf("find device %s: %w", macvlan.Device, err)
	}
	cluster, err := netlink.LinkByName(clusterDevice)
	if err != nil {
		return fmt.Errorf("find device %s: %w", clusterDevice, err)
	}
	for _, route := range s.Routes {
		if err := routeResponses(cluster, route.family()); err != nil {
			return err
		}
		if err := setSysctls(route.family(), s.redirects()); err != nil {
			return err
		}
	}
	if err := s.rules(); err != nil {
		return err
	}
	return s.setAddresses(outside)
}

// setAddresses assigns the source addresses and the default routes to a device. The kernel then
// announces the addresses, because machines on the network might still have the MAC address of a
// previous pod in their caches.
func (s Settings) setAddresses(link netlink.Link) error {
	name := link.Attrs().Name
	if err := netlink.LinkSetDown(link); err != nil {
		return fmt.Errorf("set device %s down: %w", name, err)
	}
	present, err := netlink.AddrList(link, netlink.FAMILY_ALL)
	if err != nil {
		return fmt.Errorf("list addresses of device %s: %w", name, err)
	}
	for _, address := range present {
		if err := netlink.AddrDel(link, &address); err != nil {
			return fmt.Errorf("remove address %s of device %s: %w", address.IPNet, name, err)
		}
	}
	for _, r := range s.Routes {
		address := &netlink.Addr{IPNet: network(r.Source)}
		if r.family() == ipfamily.IPv6 {
			address.Flags = unix.IFA_F_NODAD // otherwise, the address is unusable for a second
		}
		if err := netlink.AddrAdd(link, address); err != nil {
			return fmt.Errorf("set address of device %s to %s: %w", name, r.Source, err)
		}
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("set device %s up: %w", name, err)
	}
	for _, r := range s.Routes {
		gateway := netip.PrefixFrom(r.Gateway, r.Gateway.BitLen())
		for _, route := range []*netlink.Route{
			{LinkIndex: link.Attrs().Index, Scope: netlink.SCOPE_LINK, Dst: network(gateway)},
			{LinkIndex: link.Attrs().Index, Gw: r.Gateway.AsSlice()},
		} {
			if err := netlink.RouteReplace(route); err != nil {
				return fmt.Errorf("add route through %s: %w", r.Gateway, err)
			}
		}
	}
	return nil
}

// routeResponses routes a family's marked packets through the cluster network.
func routeResponses(cluster netlink.Link, f ipfamily.Family) error {
	// Search all tables, because a previous call might have replaced this route in the main table.
	filter := &netlink.Route{LinkIndex: cluster.Attrs().Index, Table: unix.RT_TABLE_UNSPEC}
	routes, err := netlink.RouteListFiltered(f.Netlink(), filter, netlink.RT_FILTER_OIF|netlink.RT_FILTER_TABLE)
	if err != nil {
		return fmt.Errorf("list routes of device %s: %w", clusterDevice, err)
	}
	for _, r := range routes {
		if r.Gw == nil {
			continue
		}
		route := &netlink.Route{LinkIndex: cluster.Attrs().Index, Gw: r.Gw, Table: clusterTable}
		if err := netlink.RouteReplace(route); err != nil {
			return fmt.Errorf("add response route: %w", err)
		}
		rule := netlink.NewRule()
		rule.Family, rule.Mark, rule.Table, rule.Priority = f.Netlink(), clusterMark, clusterTable, clusterTable
		if err := netlink.RuleAdd(rule); err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("add response rule: %w", err)
		}
		return nil
	}
	return fmt.Errorf("device %s has no %s gateway: the cluster's network must support %s", clusterDevice, f, f)
}

// sysctls returns the settings that make the kernel announce addresses, and accept packets from
// clients whose route leads through another device. IPv6 is initially disabled on the macvlan
// device. The device must not get other addresses or routes from machines outside the cluster.
func sysctls(f ipfamily.Family) [][2]string {
	if f == ipfamily.IPv4 {
		return [][2]string{
			{"net/ipv4/conf/" + macvlan.Device + "/arp_notify", "1"},
			{"net/ipv4/conf/" + clusterDevice + "/rp_filter", "2"},
		}
	}
	const device = "net/ipv6/conf/" + macvlan.Device
	return [][2]string{
		{device + "/accept_ra", "0"}, {device + "/accept_redirects", "0"}, {device + "/ndisc_notify", "1"}, {device + "/disable_ipv6", "0"},
	}
}

// setSysctls sets a family's sysctls. If forward is true, the pod forwards packets.
func setSysctls(f ipfamily.Family, forward bool) error {
	settings := sysctls(f)
	if forward {
		settings = append(settings, [2]string{[...]string{"net/ipv4/ip_forward", "net/ipv6/conf/all/forwarding"}[f], "1"})
	}
	for _, setting := range settings {
		if err := os.WriteFile("/proc/sys/"+setting[0], []byte(setting[1]), 0); err != nil {
			if errors.Is(err, unix.EROFS) {
				err = os.ErrPermission
			}
			return fmt.Errorf("set sysctl %s: %w", setting[0], err)
		}
	}
	return nil
}

func network(prefix netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: prefix.Addr().AsSlice(), Mask: net.CIDRMask(prefix.Bits(), prefix.Addr().BitLen())}
}
