package kit

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"

	"github.com/containernetworking/plugins/pkg/netlinksafe"
	"github.com/vishvananda/netlink"

	"github.com/slipway-platform/slipway/internal/netnamespace"
)

// testNetworks is the address range from which machines get their networks. RFC 2544 reserves this
// range for benchmarks.
var testNetworks = netip.MustParsePrefix("198.18.0.0/15")

// claimAttempts is the maximum number of networks that claim tries.
const claimAttempts = 100

// claim assigns a device the first address of a random network from testNetworks, and returns the
// network. It selects a network in which no other device has an address, because otherwise two test
// processes could receive each other's packets.
func claim(device string, bits int) (netip.Prefix, error) {
	link, err := netlinksafe.LinkByName(device)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("find device %q: %w", device, err)
	}
	for range claimAttempts {
		network := randomNetwork(bits)
		address := netip.PrefixFrom(network.Addr().Next(), bits)
		if err := netnamespace.SetUp(device, address); err != nil {
			return netip.Prefix{}, err
		}
		// If another process claims the same network at the same time, both processes detect the
		// overlap.
		unique, err := isUnique(network, link.Attrs().Index)
		if err != nil || unique {
			return network, err
		}
		former, err := netlink.ParseAddr(address.String())
		if err == nil {
			err = netlink.AddrDel(link, former)
		}
		if err != nil {
			return netip.Prefix{}, fmt.Errorf("remove address %s from device %q: %w", address, device, err)
		}
	}
	return netip.Prefix{}, errors.New("this machine uses all networks in " + testNetworks.String())
}

func randomNetwork(bits int) netip.Prefix {
	base := testNetworks.Addr().As4()
	offset := rand.IntN(1<<(bits-testNetworks.Bits())) << (32 - bits)
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{base[0], base[1] + byte(offset>>16), byte(offset >> 8), byte(offset)}), bits)
}

// isUnique reports whether the device with the given index is the only device with an address in
// the network.
func isUnique(network netip.Prefix, device int) (bool, error) {
	addresses, err := netlinksafe.AddrList(nil, netlink.FAMILY_V4)
	if err != nil {
		return false, fmt.Errorf("list addresses: %w", err)
	}
	for _, address := range addresses {
		ip, _ := netip.AddrFromSlice(address.IP.To4())
		bits, _ := address.Mask.Size()
		if address.LinkIndex != device && netip.PrefixFrom(ip, bits).Masked().Overlaps(network) {
			return false, nil
		}
	}
	return true, nil
}
