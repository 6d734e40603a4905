package kit

import (
	"errors"
	"net/netip"

	"github.com/slipway-platform/slipway/internal/netnamespace"
)

// Neighbor returns a machine without Slipway on the same network segment as the cluster's machine,
// which requires Options.Segment. The neighbor's eth0 device also has the given addresses, in CIDR
// notation. The neighbor is removed at the end of the test.
func (c *Cluster) Neighbor(addresses ...string) *Machine {
	c.t.Helper()
	if c.segment == nil {
		c.t.Fatal("the cluster's machine shares no network segment")
	}
	machine, err := newMachine(Options{}, c.segment)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		if err := machine.remove(); err != nil {
			c.t.Error(err)
		}
	})
	err = machine.Do(func() error {
		var errs []error
		for _, address := range addresses {
			prefix, err := netip.ParsePrefix(address)
			errs = append(errs, err)
			if err == nil {
				errs = append(errs, netnamespace.SetUp("eth0", prefix))
			}
		}
		return errors.Join(errs...)
	})
	if err != nil {
		c.t.Fatal(err)
	}
	return machine
}
