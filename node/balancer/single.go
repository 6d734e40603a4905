package balancer

import (
	"context"
	"os"
	"time"

	"github.com/slipway-platform/slipway/node/groupconfig"
)

// recordInterval is the interval at which Single checks whether the record exists.
const recordInterval = 2 * time.Second

// Single replaces the balancer on the only master's node, which does not need a balancer. The node
// restarts when masters are added to the cluster.
type Single struct {
	// Record is the path of the file that records that there are several masters.
	Record string
}

// Name returns the component's name.
func (Single) Name() string { return "balancer" }

// Run returns groupconfig.ErrRestart when the record exists.
func (s Single) Run(ctx context.Context, ready func()) error {
	ready()
	ticker := time.NewTicker(recordInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if _, err := os.Stat(s.Record); err == nil {
			return groupconfig.ErrRestart
		}
	}
}
