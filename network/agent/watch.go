package agent

import (
	"context"
	"fmt"
	"net/netip"
	"sync"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// watchDevices sends a signal when one of the agent's devices is removed, goes down or loses its
// address, until ctx is done. If the kernel drops an event, the next periodic check repairs the
// network.
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
	notify := func() {
		select {
		case damage <- struct{}{}:
		default: // a signal is already pending
		}
	}
	tasks.Go(func() {
		for update := range links { // the subscription closes the channel when ctx is done
			if a.isDamaged(update) {
				notify()
			}
		}
	})
	tasks.Go(func() {
		for update := range addresses {
			if !update.NewAddr && a.isOwnAddress(update) {
				notify()
			}
		}
	})
	return damage, nil
}

func (a *Agent) isDamaged(update netlink.LinkUpdate) bool {
	name := update.Attrs().Name
	if name != a.Bridge && name != a.DNSDevice && (name != a.VXLANDevice || name == "") {
		return false
	}
	return update.Header.Type == unix.RTM_DELLINK || update.Attrs().RawFlags&unix.IFF_UP == 0
}

// isOwnAddress reports whether an update is for the address of the bridge or of the DNS server.
func (a *Agent) isOwnAddress(update netlink.AddrUpdate) bool {
	address, ok := netip.AddrFromSlice(update.LinkAddress.IP)
	return ok && (address.Unmap() == a.DNSIP || a.isPod(address.Unmap()))
}
