package agent

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"

	"github.com/containernetworking/plugins/pkg/netlinksafe"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/slipway-platform/slipway/network/egressip"
	"github.com/slipway-platform/slipway/network/ipfamily"
	"github.com/slipway-platform/slipway/network/vxlan"
)

// routeProtocol marks the agent's routes, so that the agent recognizes them. The kernel does not
// use this number itself.
const routeProtocol netlink.RouteProtocol = 83

// ensureRoutes makes the agent's routes match the desired routes.
func ensureRoutes(desired map[netip.Prefix]netlink.Route) error {
	existing, err := ownRoutes()
	if err != nil {
		return err
	}
	var errs []error
	for subnet, route := range existing {
		if _, exists := desired[subnet]; exists {
			continue
		}
		if err := netlink.RouteDel(&route); err != nil && !errors.Is(err, unix.ESRCH) {
			errs = append(errs, fmt.Errorf("remove route to pods %s: %w", subnet, err))
		}
	}
	for subnet, route := range desired {
		if present, exists := existing[subnet]; exists && present.Gw.Equal(route.Gw) && present.LinkIndex == route.LinkIndex {
			continue
		}
		if present, exists := existing[subnet]; exists && subnet.Addr().Is6() {
			// For IPv6, remove the existing route first. Otherwise, the kernel rejects the new
			// gateway if the existing route leads to this gateway through another device.
			if err := netlink.RouteDel(&present); err != nil && !errors.Is(err, unix.ESRCH) {
				errs = append(errs, fmt.Errorf("remove route to pods %s: %w", subnet, err))
			}
		}
		route.Dst = &net.IPNet{IP: subnet.Addr().AsSlice(), Mask: net.CIDRMask(subnet.Bits(), subnet.Addr().BitLen())}
		route.Protocol = routeProtocol
		if err := netlink.RouteReplace(&route); err != nil {
			errs = append(errs, fmt.Errorf("set route to pods %s: %w", subnet, err))
			continue
		}
		slog.Info("set route to pods", "podCIDR", subnet, "address", route.Gw)
	}
	return errors.Join(errs...)
}

// unreachable returns a route that makes destinations unreachable. The agent sets it for the IPv6
// addresses in the node's subnet that no pod can have.
func unreachable() netlink.Route {
	const loopback = 1 // the kernel assigns unreachable routes to this device
	return netlink.Route{Type: unix.RTN_UNREACHABLE, LinkIndex: loopback}
}

// ownRoutes returns the routes that the agent has set, keyed by destination.
func ownRoutes() (map[netip.Prefix]netlink.Route, error) {
	list, err := netlinksafe.RouteListFiltered(netlink.FAMILY_ALL, &netlink.Route{Protocol: routeProtocol}, netlink.RT_FILTER_PROTOCOL)
	if err != nil {
		return nil, fmt.Errorf("list routes to other hosts: %w", err)
	}
	routes := map[netip.Prefix]netlink.Route{}
	for _, route := range list {
		if route.Dst == nil {
			continue
		}
		address, ok := netip.AddrFromSlice(route.Dst.IP)
		bits, _ := route.Dst.Mask.Size()
		if ok {
			routes[netip.PrefixFrom(address.Unmap(), bits)] = route
		}
	}
	return routes, nil
}

// ensureExitRoutes adds, for each of the given IP families, the route for packets that leave the
// cluster through another host. The route leads through the VXLAN device. Package policy adds the
// rules that select the route's table.
func ensureExitRoutes(device netlink.Link, families []ipfamily.Family) error {
	for _, family := range families {
		everything := family.Unspecified()
		route := &netlink.Route{
			Table: egressip.Table, LinkIndex: device.Attrs().Index, Gw: vxlan.NextHop(family).AsSlice(), Flags: int(netlink.FLAG_ONLINK), Protocol: routeProtocol,
			Dst: &net.IPNet{IP: everything.AsSlice(), Mask: net.CIDRMask(0, everything.BitLen())},
		}
		if err := netlink.RouteReplace(route); err != nil {
			return fmt.Errorf("set external route through device %q: %w", device.Attrs().Name, err)
		}
	}
	return nil
}

// removeRoutes removes the routes to the pods of other hosts.
func removeRoutes() error {
	routes, err := ownRoutes()
	errs := []error{err}
	for subnet, route := range routes {
		if err := netlink.RouteDel(&route); err != nil && !errors.Is(err, unix.ESRCH) {
			errs = append(errs, fmt.Errorf("remove route to pods %s: %w", subnet, err))
		}
	}
	return errors.Join(errs...)
}
