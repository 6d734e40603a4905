package router

import (
	"context"

	"github.com/slipway-platform/slipway/router/haproxy"
)

// Disabled is the component that runs on a node whose router is disabled. It stops HAProxy
// processes that an earlier router on the node has left running.
type Disabled struct {
	// Dir is the working directory of the earlier router.
	Dir string
}

// Name returns the component's name.
func (*Disabled) Name() string { return "router" }

// Run stops orphaned HAProxy processes and then waits until ctx is done.
func (d *Disabled) Run(ctx context.Context, ready func()) error {
	if err := haproxy.EndOrphans(d.Dir); err != nil {
		return err
	}
	ready()
	<-ctx.Done()
	return nil
}
