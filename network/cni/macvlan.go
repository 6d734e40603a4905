package cni

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"

	current "github.com/containernetworking/cni/pkg/types/100"
	"github.com/containernetworking/plugins/pkg/netlinksafe"
	"github.com/containernetworking/plugins/pkg/ns"
	"github.com/containernetworking/plugins/pkg/utils/sysctl"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/slipway-platform/slipway/internal/macvlan"
	"github.com/slipway-platform/slipway/network/hostaddr"
	"github.com/slipway-platform/slipway/network/ipfamily"
)

// createMacvlan creates the macvlan device that a pod's annotation requests, and returns it. The
// device has no address and is down, and IPv6 is disabled on it: the pod configures the device. The
// pod can also set default routes on it, so createMacvlan gives the pod explicit routes to the
// cluster networks. Only the API server checks which pods may have the annotation.
//
// As in OpenShift 3, the device is in "private" mode: it cannot reach other macvlan devices on the
// host directly.
func (c *call) createMacvlan(l lease) ([]*current.Interface, error) {
	request, err := macvlan.Parse(c.config.RuntimeConfig.Annotations)
	if err != nil || !request.Wanted {
		return nil, err
	}
	parent, err := parentDevice(request.Parent)
	if err != nil {
		return nil, err
	}
	pod, err := ns.GetNS(c.args.Netns)
	if err != nil {
		return nil, fmt.Errorf("create device %q: %w", macvlan.Device, err)
	}
	defer pod.Close()
	attributes := netlink.NewLinkAttrs()
	attributes.Name, attributes.MTU, attributes.ParentIndex = macvlan.Device, parent.Attrs().MTU, parent.Attrs().Index
	attributes.Namespace = netlink.NsFd(pod.Fd())
	err = netlink.LinkAdd(&netlink.Macvlan{LinkAttrs: attributes, Mode: netlink.MACVLAN_MODE_PRIVATE})
	if errors.Is(err, unix.EBUSY) {
		err = fmt.Errorf("%w; ports of a bridge or a bond cannot have macvlan devices, so name another device in annotation %s", err, macvlan.Annotation)
	}
	if err != nil {
		return nil, fmt.Errorf("create device %q on %q: %w", macvlan.Device, parent.Attrs().Name, err)
	}
	created := &current.Interface{Name: macvlan.Device, Mtu: parent.Attrs().MTU, Sandbox: c.args.Netns}
	err = pod.Do(func(ns.NetNS) error {
		link, err := netlinksafe.LinkByName(macvlan.Device)
		if err != nil {
			return fmt.Errorf("find device %q: %w", macvlan.Device, err)
		}
		created.Mac = link.Attrs().HardwareAddr.String()
		if _, err := sysctl.Sysctl("net/ipv6/conf/"+macvlan.Device+"/disable_ipv6", "1"); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("disable IPv6 of device %q: %w", macvlan.Device, err)
		}
		for _, e := range c.config.ends(l) {
			if err := routeThroughGateway(c.args.IfName, e.gateway, c.config.ClusterNetworks); err != nil {
				return err
			}
		}
		return nil
	})
	return []*current.Interface{created}, err
}

// parentDevice returns the host device with the given name. If the name is empty, it returns the
// default route's device.
func parentDevice(name string) (netlink.Link, error) {
	if name != "" {
		link, err := netlinksafe.LinkByName(name)
		if err != nil {
			return nil, fmt.Errorf("find device %q of annotation %s: %w", name, macvlan.Annotation, err)
		}
		return link, nil
	}
	link, err := hostaddr.DefaultDevice()
	if err != nil {
		return nil, err
	}
	if link == nil {
		return nil, fmt.Errorf("create device %q: the node has no default route; name a device in annotation %s", macvlan.Device, macvlan.Annotation)
	}
	return link, nil
}

// routeThroughGateway adds, in the pod's namespace, a route through the gateway to each network of
// the gateway's IP family.
func routeThroughGateway(iface string, gateway netip.Addr, networks []netip.Prefix) error {
	link, err := netlinksafe.LinkByName(iface)
	if err != nil {
		return fmt.Errorf("find device %q: %w", iface, err)
	}
	for _, network := range networks {
		if ipfamily.Of(network.Addr()) != ipfamily.Of(gateway) {
			continue
		}
		to := &net.IPNet{IP: network.Addr().AsSlice(), Mask: net.CIDRMask(network.Bits(), network.Addr().BitLen())}
		if err := netlink.RouteReplace(&netlink.Route{LinkIndex: link.Attrs().Index, Dst: to, Gw: gateway.AsSlice()}); err != nil {
			return fmt.Errorf("add route to %s through %s: %w", network, gateway, err)
		}
	}
	return nil
}

// removeMacvlan removes the device immediately. Otherwise, the kernel would remove the device with
// the pod's namespace, with a delay. During the delay, the device would respond to requests for its
// address, even if the address has been assigned to another pod.
func (c *call) removeMacvlan() error {
	request, err := macvlan.Parse(c.config.RuntimeConfig.Annotations)
	if err != nil || !request.Wanted || c.args.Netns == "" {
		return nil
	}
	err = ns.WithNetNSPath(c.args.Netns, func(ns.NetNS) error {
		link, err := netlinksafe.LinkByName(macvlan.Device)
		if err == nil {
			err = netlink.LinkDel(link)
		}
		return err
	})
	if errors.As(err, &ns.NSPathNotExistErr{}) || errors.As(err, &ns.NSPathNotNSErr{}) || errors.As(err, &netlink.LinkNotFoundError{}) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("remove device %q: %w", macvlan.Device, err)
	}
	return nil
}
