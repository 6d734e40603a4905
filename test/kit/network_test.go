package kit

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/slipway-platform/slipway/internal/netnamespace"
)

func TestClaimedNetworksDoNotOverlap(t *testing.T) {
	namespace, err := netnamespace.New()
	if err != nil {
		t.Fatal(err)
	}
	defer namespace.Close()
	add := func(device string) error {
		attributes := netlink.NewLinkAttrs()
		attributes.Name = device
		return netlink.LinkAdd(&netlink.Bridge{LinkAttrs: attributes})
	}
	other := netip.MustParsePrefix("198.18.0.1/16") // half of the range
	err = namespace.Do(func() error {
		if err := add("other"); err != nil {
			return err
		}
		if err := netnamespace.SetUp("other", other); err != nil {
			return err
		}
		for i := range 20 {
			device := fmt.Sprintf("test%d", i)
			if err := add(device); err != nil {
				return err
			}
			network, err := claim(device, 24)
			if err != nil {
				return err
			}
			if other.Overlaps(network) || !testNetworks.Overlaps(network) {
				t.Errorf("device %s has the network %s", device, network)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
