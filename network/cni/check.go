package cni

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/plugins/pkg/netlinksafe"
	"github.com/containernetworking/plugins/pkg/ns"

	"github.com/slipway-platform/slipway/network/ipfamily"
	"github.com/slipway-platform/slipway/network/nat"
)

// check compares the lease that ADD recorded with the pod's device, bridge port, address, source
// filter, default route and host ports.
func check(args *skel.CmdArgs) error {
	c, err := newCall(args)
	if err != nil {
		return err
	}
	l, ok, err := c.leases.find(c.device)
	if err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("check container %q: it has no address", args.ContainerID)
	}
	bridge, err := findBridge(c.config.Bridge)
	if err != nil {
		return err
	}
	port, err := netlinksafe.LinkByName(c.device)
	if err != nil {
		return fmt.Errorf("check device %q: %w", c.device, err)
	}
	if port.Attrs().MasterIndex != bridge.Attrs().Index {
		return fmt.Errorf("check device %q: it is not a port of bridge %q", c.device, c.config.Bridge)
	}
	if err := c.config.checkFilter(l); err != nil {
		return err
	}
	err = ns.WithNetNSPath(args.Netns, func(ns.NetNS) error {
		for _, e := range c.config.ends(l) {
			if err := checkPod(args.IfName, e.address, e.gateway); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil || len(l.Ports) == 0 {
		return err
	}
	owners, err := nat.Owners(context.Background(), c.config.NFTTable, c.config.families()...)
	if err != nil {
		return err
	}
	if want := c.config.published(l); owners[c.device] < want {
		return fmt.Errorf("check host ports of container %q: %d of %d exist", args.ContainerID, owners[c.device], want)
	}
	return nil
}

// checkPod checks an address and its default route in the pod's namespace.
func checkPod(iface string, address, gateway netip.Addr) error {
	link, err := netlinksafe.LinkByName(iface)
	if err != nil {
		return fmt.Errorf("check device %q: %w", iface, err)
	}
	addresses, err := netlinksafe.AddrList(link, ipfamily.Of(address).Netlink())
	if err != nil {
		return fmt.Errorf("list addresses of device %q: %w", iface, err)
	}
	present := false
	for _, a := range addresses {
		present = present || a.IP.Equal(address.AsSlice())
	}
	if !present {
		return fmt.Errorf("check device %q: it lacks address %s", iface, address)
	}
	routes, err := netlinksafe.RouteList(link, ipfamily.Of(address).Netlink())
	if err != nil {
		return fmt.Errorf("list routes of device %q: %w", iface, err)
	}
	for _, r := range routes {
		if r.Gw.Equal(gateway.AsSlice()) {
			return nil
		}
	}
	return fmt.Errorf("check device %q: it lacks the default route through %s", iface, gateway)
}
