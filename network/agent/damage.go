package agent

import (
	"context"
	"fmt"
	"net/netip"
	"sync"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// watchDevices reports when one of our devices goes away or down, or loses its address, until the context ends. Should
// the kernel lose events because too many came at once, the periodic check stands in.
func (a *Agent) watchDevices(ctx context.Context, tasks *sync.WaitGroup) (<-chan struct{}, error) {
	links := make(chan netlink.LinkUpdate, 64)
	if err := netlink.LinkSubscribe(links, ctx.Done()); err != nil {
		return nil, fmt.Errorf("watch devices: %w", err)
	}
	addresses := make(chan netlink.AddrUpdate, 64)
	if err := netlink.AddrSubscribe(addresses, ctx.Done()); err != nil {
		return nil, fmt.Errorf("watch addresses: %w", err)
	}
	damage := make(chan struct{}, 1)
	report := func() {
		select {
		case damage <- struct{}{}:
		default: // one is waiting already
		}
	}
	tasks.Go(func() {
		for update := range links { // closed by the subscription when the context ends
			if a.damaged(update) {
				report()
			}
		}
	})
	tasks.Go(func() {
		for update := range addresses {
			if !update.NewAddr && a.ours(update) {
				report()
			}
		}
	})
	return damage, nil
}

func (a *Agent) damaged(update netlink.LinkUpdate) bool {
	name := update.Attrs().Name
	if name != a.Bridge && name != a.DNSDevice {
		return false
	}
	return update.Header.Type == unix.RTM_DELLINK || update.Attrs().RawFlags&unix.IFF_UP == 0
}

// ours tells whether an address belongs to the bridge or is the DNS server's.
func (a *Agent) ours(update netlink.AddrUpdate) bool {
	address, ok := netip.AddrFromSlice(update.LinkAddress.IP)
	return ok && (address.Unmap() == a.DNSIP || a.ClusterCIDR.Contains(address.Unmap()))
}
