package cni

import (
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/slipway-platform/slipway/internal/macvlan"
	"github.com/slipway-platform/slipway/network/internal/hosttest"
)

func annotated(value string) func(*Config) {
	return func(c *Config) {
		c.RuntimeConfig.Annotations = map[string]string{macvlan.Annotation: value}
		c.ClusterNetworks = []netip.Prefix{netip.MustParsePrefix("10.128.0.0/14"), netip.MustParsePrefix("172.30.0.0/16"), netip.MustParsePrefix("fd01::/48")}
	}
}

// uplink connects the host to a machine through a device that has the default route.
func (b *bench) uplink() {
	b.Helper()
	machine := hosttest.NewNamespace(b.T, "machine")
	machine.Connect(b.T, "192.0.2.1/24", "192.0.2.2/24")
	machine.Serve(b.T, 80)
	b.must(netlink.RouteAdd(&netlink.Route{Gw: net.IPv4(192, 0, 2, 2)}))
}

// useMacvlan gives the pod's macvlan device an address and the default route, as the egress router
// does.
func (b *bench) useMacvlan(pod hosttest.Namespace, address string) {
	b.Helper()
	pod.Do(b.T, func() error {
		link, err := netlink.LinkByName(macvlan.Device)
		if err != nil {
			return err
		}
		if link.Type() != "macvlan" || link.(*netlink.Macvlan).Mode != netlink.MACVLAN_MODE_PRIVATE {
			b.Errorf("the device is a %s: %+v", link.Type(), link)
		}
		parsed, err := netlink.ParseAddr(address)
		if err != nil {
			return err
		}
		b.must(netlink.AddrAdd(link, parsed))
		b.must(netlink.LinkSetUp(link))
		return netlink.RouteReplace(&netlink.Route{LinkIndex: link.Attrs().Index, Gw: net.IPv4(192, 0, 2, 2)})
	})
}

func TestMacvlanDeviceHasOwnAddressOutside(t *testing.T) {
	for _, value := range []string{"true", "to-machine"} {
		t.Run(value, func(t *testing.T) {
			b := newBench(t)
			b.uplink()
			_, peer := b.pod("peer", nil)
			pod := hosttest.NewNamespace(t, "one")
			result := b.add(pod, annotated(value))
			if got := result.Interfaces[len(result.Interfaces)-1]; got.Name != macvlan.Device || got.Sandbox != pod.Path || got.Mac == "" {
				t.Errorf("the result contains %+v", got)
			}
			address := result.IPs[0].Address.IP.String()
			pod.Serve(t, 80)
			b.useMacvlan(pod, "192.0.2.9/24")
			b.checkResponse(pod, "tcp4", "192.0.2.2:80", "machine 192.0.2.9")
			b.checkResponse(pod, "tcp4", peer+":80", "peer "+address)
			b.checkResponse(hosttest.Host(), "tcp4", address+":80", "one 10.128.2.1")

			// DEL removes the device, although the namespace still exists.
			_, err := b.plugin("DEL", pod, annotated(value))
			b.must(err)
			pod.Do(t, func() error {
				if _, err := netlink.LinkByName(macvlan.Device); err == nil {
					t.Error("the device still exists")
				}
				return nil
			})
			_, err = b.plugin("DEL", pod, annotated(value))
			b.must(err)
			pod.Delete()
			_, err = b.plugin("DEL", pod, annotated(value))
			b.must(err)
		})
	}
}

func TestMacvlanDeviceNeedsParent(t *testing.T) {
	b := newBench(t)
	port := netlink.NewLinkAttrs()
	port.Name = "port"
	b.must(netlink.LinkAdd(&netlink.Veth{LinkAttrs: port, PeerName: "other"}))
	link, err := netlink.LinkByName("port")
	b.must(err)
	t.Cleanup(func() { _ = netlink.LinkDel(link) })
	bridge, err := netlink.LinkByName(b.config.Bridge)
	b.must(err)
	b.must(netlink.LinkSetMaster(link, bridge))
	pod := hosttest.NewNamespace(t, "one")
	for _, tt := range []struct{ name, value, want string }{
		{"no default route", "true", "the node has no default route; name a device"},
		{"missing device", "eth9", "of annotation " + macvlan.Annotation + ": Link not found"},
		{"port of a bridge", "port", "ports of a bridge or a bond"},
		{"invalid name", "a/b", "must be"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := b.plugin("ADD", pod, annotated(tt.value)); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			b.nothingLeft()
		})
	}
	result := b.add(pod, annotated("false"))
	if len(result.Interfaces) != 3 {
		t.Errorf("a pod that requests no device has %+v", result.Interfaces)
	}
}

// A pod that replaces the default routes of both IP families can still reach the cluster.
func TestMacvlanPodHasRoutesToClusterNetworks(t *testing.T) {
	b := newBench(t)
	b.uplink()
	b.config.SecondCIDR = netip.MustParsePrefix("fd01:0:0:2::/64")
	pod := hosttest.NewNamespace(t, "one")
	b.add(pod, annotated("true"))
	var routes []string
	pod.Do(t, func() error {
		list, err := netlink.RouteList(nil, netlink.FAMILY_ALL)
		for _, route := range list {
			if ones, _ := route.Dst.Mask.Size(); route.Gw != nil && ones > 0 {
				routes = append(routes, route.Dst.String()+" through "+route.Gw.String())
			}
		}
		return err
	})
	slices.Sort(routes)
	want := []string{"10.128.0.0/14 through 10.128.2.1", "172.30.0.0/16 through 10.128.2.1", "fd01::/48 through fd01:0:0:2::1"}
	if !slices.Equal(routes, want) {
		t.Errorf("got routes %q, want %q", routes, want)
	}
}
