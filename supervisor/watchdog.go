package supervisor

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// feedWatchdog notifies systemd's watchdog while the supervisor can record and serve its status,
// until the returned function is called. systemd restarts a service whose notifications stop.
// Without WatchdogSec in the unit, feedWatchdog is a no-op.
func (s *Supervisor) feedWatchdog() (stop func()) {
	limit, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		slog.Warn("cannot notify systemd's watchdog", "error", err)
	}
	if limit <= 0 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	group.Go(func() {
		// sd_watchdog_enabled(3) recommends an interval of half the limit.
		tick := time.NewTicker(limit / 2)
		defer tick.Stop()
		for {
			s.snapshot() // blocks while the supervisor hangs
			_, _ = daemon.SdNotify(false, daemon.SdNotifyWatchdog)
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	})
	return func() { cancel(); group.Wait() }
}
