package kit

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net/netip"
	"os"

	"github.com/containernetworking/plugins/pkg/netlinksafe"
	"github.com/vishvananda/netlink"

	"github.com/slipway-platform/slipway/internal/netnamespace"
	"github.com/slipway-platform/slipway/internal/vxlanpacket"
)

// segment is a network segment that several machines share: a bridge on this machine, which is
// their gateway.
type segment struct {
	bridge  string
	prefix  netip.Prefix
	gateway netip.Addr
	last    netip.Addr // addresses of the machines
	second  bool       // this machine has an IPv6 address there
}

// newSegment creates the bridge with a /24 from the range for tests between machines (RFC 2544).
func newSegment(name string) (*segment, error) {
	number, err := rand.Int(rand.Reader, big.NewInt(1<<9))
	if err != nil {
		return nil, err
	}
	base := netip.AddrFrom4([4]byte{198, byte(18 + number.Int64()>>8), byte(number.Int64()), 0})
	s := &segment{bridge: name + "-b", prefix: netip.PrefixFrom(base, 24), gateway: base.Next(), last: base.Next()}
	attributes := netlink.NewLinkAttrs()
	attributes.Name = s.bridge
	if err := netlink.LinkAdd(&netlink.Bridge{LinkAttrs: attributes}); err != nil {
		return nil, fmt.Errorf("add bridge %q: %w", s.bridge, err)
	}
	// Do not masquerade packets between segments, so that they keep their source addresses.
	match := "ip saddr " + s.prefix.String() + " ip daddr != 198.18.0.0/15"
	err = errors.Join(netnamespace.SetUp(s.bridge, netip.PrefixFrom(s.gateway, 24)), letOut(s.bridge, match, s.bridge))
	if err != nil {
		return nil, errors.Join(err, s.remove())
	}
	return s, nil
}

// enableIPv6 gives this machine an IPv6 address on the segment, such as fd00:198:18::1, and returns
// the address with its network.
func (s *segment) enableIPv6() (netip.Prefix, error) {
	base := s.prefix.Addr().As4()
	gateway := netip.PrefixFrom(netip.AddrFrom16([16]byte{0: 0xfd, 3: base[0], 5: base[1], 7: base[2], 15: 1}), 64)
	if s.second {
		return gateway, nil
	}
	s.second = true
	return gateway, errors.Join(skipAddressDetection(s.bridge), routeIPv6(s.bridge), netnamespace.SetUp(s.bridge, gateway))
}

// routeIPv6 makes this machine route IPv6 packets that arrive at a device. Kernels before 6.17 can
// only route the packets of all devices.
func routeIPv6(device string) error {
	const settings = "/proc/sys/net/ipv6/conf/"
	err := os.WriteFile(settings+device+"/force_forwarding", []byte("1"), 0)
	if errors.Is(err, fs.ErrNotExist) {
		err = os.WriteFile(settings+"all/forwarding", []byte("1"), 0)
	}
	if errors.Is(err, fs.ErrNotExist) { // the kernel has no IPv6
		return nil
	}
	return err
}

// remove removes the bridge. All machines must be disconnected from it first.
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

// Capture captures the frames between the machine and its network.
func (m *Machine) Capture() (*vxlanpacket.Capture, error) { return vxlanpacket.NewCapture(m.name) }
