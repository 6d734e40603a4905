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
	if err := routeResponses(cluster); err != nil {
		return err
	}
	if err := setSysctls(s.redirects()); err != nil {
		return err
	}
	if err := s.rules(); err != nil {
		return err
	}
	return s.setAddress(outside)
}

// setAddress gives a device the source address and the default route. The kernel then announces the
// address, because machines on the network might still have a previous pod's MAC address.
func (s Settings) setAddress(link netlink.Link) error {
	name := link.Attrs().Name
	if err := netlink.LinkSetDown(link); err != nil {
		return fmt.Errorf("set device %s down: %w", name, err)
	}
	present, err := netlink.AddrList(link, netlink.FAMILY_V4)
	if err != nil {
		return fmt.Errorf("list addresses of device %s: %w", name, err)
	}
	for _, address := range present {
		if err := netlink.AddrDel(link, &address); err != nil {
			return fmt.Errorf("remove address %s of device %s: %w", address.IPNet, name, err)
		}
	}
	if err := netlink.AddrAdd(link, &netlink.Addr{IPNet: network(s.Source)}); err != nil {
		return fmt.Errorf("set address of device %s to %s: %w", name, s.Source, err)
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("set device %s up: %w", name, err)
	}
	gateway := netip.PrefixFrom(s.Gateway, s.Gateway.BitLen())
	for _, route := range []*netlink.Route{
		{LinkIndex: link.Attrs().Index, Scope: netlink.SCOPE_LINK, Dst: network(gateway)},
		{LinkIndex: link.Attrs().Index, Gw: s.Gateway.AsSlice()},
	} {
		if err := netlink.RouteReplace(route); err != nil {
			return fmt.Errorf("add route through %s: %w", s.Gateway, err)
		}
	}
	return nil
}

// routeResponses routes marked packets through the cluster network.
func routeResponses(cluster netlink.Link) error {
	// Search all tables, because a previous call might have replaced the default route.
	filter := &netlink.Route{LinkIndex: cluster.Attrs().Index, Table: unix.RT_TABLE_UNSPEC}
	routes, err := netlink.RouteListFiltered(netlink.FAMILY_V4, filter, netlink.RT_FILTER_OIF|netlink.RT_FILTER_TABLE)
	if err != nil {
		return fmt.Errorf("list routes of device %s: %w", clusterDevice, err)
	}
	for _, r := range routes {
		if r.Gw == nil {
			continue
		}
		route := &netlink.Route{LinkIndex: cluster.Attrs().Index, Gw: r.Gw, Table: clusterTable}
		if err := netlink.RouteReplace(route); err != nil {
			return fmt.Errorf("add route of responses: %w", err)
		}
		rule := netlink.NewRule()
		rule.Family, rule.Mark, rule.Table, rule.Priority = netlink.FAMILY_V4, clusterMark, clusterTable, clusterTable
		if err := netlink.RuleAdd(rule); err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("add rule of responses: %w", err)
		}
		return nil
	}
	return fmt.Errorf("device %s has no gateway", clusterDevice)
}

// setSysctls makes the kernel announce addresses, accept packets from clients whose route goes
// through another device, and, if forward is true, forward packets.
func setSysctls(forward bool) error {
	settings := [][2]string{
		{"net/ipv4/conf/" + macvlan.Device + "/arp_notify", "1"},
		{"net/ipv4/conf/" + clusterDevice + "/rp_filter", "2"},
	}
	if forward {
		settings = append(settings, [2]string{"net/ipv4/ip_forward", "1"})
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
