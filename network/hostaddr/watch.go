package hostaddr

import (
	"context"
	"net/netip"
	"time"
)

const checkInterval = 5 * time.Second

// Wait returns the machine's address when two consecutive checks find that it differs from current,
// or false when ctx is done. A machine without an address is not considered changed. The other
// arguments are the same as for HostAddress.
func Wait(ctx context.Context, current netip.Addr, preferred string, skip ...string) (netip.Addr, bool) {
	ticker := time.NewTicker(checkInterval)
	defer ticker.Stop()
	for changes := 0; ; {
		select {
		case <-ctx.Done():
			return current, false
		case <-ticker.C:
		}
		address, err := HostAddress(preferred, skip...)
		if err != nil || address == current {
			changes = 0
			continue
		}
		if changes++; changes == 2 {
			return address, true
		}
	}
}
