package kit

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"

	"github.com/containernetworking/plugins/pkg/netlinksafe"
	"github.com/vishvananda/netlink"

	"github.com/slipway-platform/slipway/internal/netnamespace"
	"github.com/slipway-platform/slipway/internal/vxlanpacket"
)

// segment is a network segment that several machines share. It is a bridge on this machine, and
// this machine is the segment's gateway.
type segment struct {
	bridge  string
	prefix  netip.Prefix
	gateway netip.Addr
	last    netip.Addr // the last address that was assigned to a machine
	second  bool       // true if this machine has an IPv6 address on the segment
}

// newSegment creates the bridge and assigns it a /24 network from testNetworks.
func newSegment(name string) (*segment, error) {
	s := &segment{bridge: name + "-b"}
	attributes := netlink.NewLinkAttrs()
	attributes.Name = s.bridge
	if err := netlink.LinkAdd(&netlink.Bridge{LinkAttrs: attributes}); err != nil {
		return nil, fmt.Errorf("add bridge %q: %w", s.bridge, err)
	}
	network, err := claim(s.bridge, 24)
	if err == nil {
		s.prefix, s.gateway, s.last = network, network.Addr().Next(), network.Addr().Next()
		// Do not masquerade packets between segments, so that they keep their source addresses.
		err = letOut(s.bridge, fmt.Sprintf("ip saddr %s ip daddr != %s", network, testNetworks), s.bridge)
	}
	if err != nil {
		return nil, errors.Join(err, s.remove())
	}
	return s, nil
}

// enableIPv6 assigns this machine an IPv6 address on the segment, such as fd00:198:18::1. It
// returns the address with its network.
func (s *segment) enableIPv6() (netip.Prefix, error) {
	base := s.prefix.Addr().As4()
	gateway := netip.PrefixFrom(netip.AddrFrom16([16]byte{0: 0xfd, 3: base[0], 5: base[1], 7: base[2], 15: 1}), 64)
	if s.second {
		return gateway, nil
	}
	s.second = true
	return gateway, errors.Join(skipAddressDetection(s.bridge), routeIPv6(s.bridge), netnamespace.SetUp(s.bridge, gateway))
}

// routeIPv6 makes this machine route the IPv6 packets that arrive at a device. Kernels before 6.17
// can only enable routing for all devices.
func routeIPv6(device string) error {
	const settings = "/proc/sys/net/ipv6/conf/"
	err := os.WriteFile(settings+device+"/force_forwarding", []byte("1"), 0)
	if errors.Is(err, fs.ErrNotExist) {
		err = os.WriteFile(settings+"all/forwarding", []byte("1"), 0)
	}
	if errors.Is(err, fs.ErrNotExist) { // the kernel does not support IPv6
		return nil
	}
	return err
}

// remove removes the bridge. All machines must already be disconnected from it.
func (s *segment) remove() error {
	errs := []error{removeTable(s.bridge)}
	if link, err := netlinksafe.LinkByName(s.bridge); err == nil {
		errs = append(errs, netlink.LinkDel(link))
	}
	return errors.Join(errs...)
}

// attach connects a device of this machine to the segment.
func (s *segment) attach(device string) error {
	bridge, err := netlinksafe.LinkByName(s.bridge)
	if err != nil {
		return fmt.Errorf("find bridge %q: %w", s.bridge, err)
	}
	link, err := netlinksafe.LinkByName(device)
	if err != nil {
		return fmt.Errorf("find device %q: %w", device, err)
	}
	return errors.Join(netlink.LinkSetMaster(link, bridge), netlink.LinkSetUp(link))
}

// Capture captures the frames between the machine and its network segment or gateway.
func (m *Machine) Capture() (*vxlanpacket.Capture, error) { return vxlanpacket.NewCapture(m.name) }
