package hostaddr

import (
	"context"
	"net/netip"
	"slices"
	"time"
)

const checkInterval = 5 * time.Second

// Addresses contains the addresses at which other hosts reach this machine.
type Addresses struct {
	First netip.Addr
	// Second is the IPv6 address, if the machine has one. It is used only if DualStack is true.
	Second    netip.Addr
	DualStack bool
}

// Wait returns the machine's addresses when two consecutive checks find that they differ from
// current, or false when ctx is done. A machine that has lost an address is not considered changed
// until it has another address. The other arguments are the same as for HostAddress.
func Wait(ctx context.Context, current Addresses, preferred string, skip ...string) (Addresses, bool) {
	ticker := time.NewTicker(checkInterval)
	defer ticker.Stop()
	for changes := 0; ; {
		select {
		case <-ctx.Done():
			return current, false
		case <-ticker.C:
		}
		next := current.next(preferred, skip)
		if next == current {
			changes = 0
			continue
		}
		if changes++; changes == 2 {
			return next, true
		}
	}
}

// next returns the machine's current addresses. It keeps the previous IPv6 address if a device
// still has it.
func (a Addresses) next(preferred string, skip []string) Addresses {
	if first, err := HostAddress(preferred, skip...); err == nil {
		a.First = first
	}
	if a.DualStack && !slices.Contains(HostAddresses(skip...), a.Second) {
		if second, err := Second(a.First, skip...); err == nil && second.IsValid() {
			a.Second = second
		}
	}
	return a
}
