package kit

import (
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"

	"github.com/slipway-platform/slipway/internal/netnamespace"
)

// Move gives the machine another IPv4 address, such as 198.51.100.7/24.
func (m *Machine) Move(address netip.Prefix) error {
	err := m.Do(func() error {
		link, err := netlink.LinkByName("eth0")
		if err != nil {
			return err
		}
		addresses, err := netlink.AddrList(link, netlink.FAMILY_V4)
		if err != nil {
			return err
		}
		for i := range addresses {
			if err := netlink.AddrDel(link, &addresses[i]); err != nil {
				return err
			}
		}
		return netnamespace.SetUp("eth0", address)
	})
	if err != nil {
		return fmt.Errorf("move machine to %s: %w", address, err)
	}
	m.Address = address.Addr()
	return nil
}

// NextAddress returns an unused address on the machine's segment, with the segment's prefix length.
func (m *Machine) NextAddress() netip.Prefix {
	m.segment.last = m.segment.last.Next()
	return netip.PrefixFrom(m.segment.last, m.segment.prefix.Bits())
}
