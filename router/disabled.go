package router

import (
	"context"

	"github.com/slipway-platform/slipway/router/haproxy"
)

// Disabled is the component of a node whose router is disabled. It stops HAProxy processes that an
// earlier router of the node left running.
type Disabled struct {
	// Dir is the working directory of the previous router.
	Dir string
}

// Name returns the component's name.
func (*Disabled) Name() string { return "router" }

// Run ends the orphan and then waits until ctx ends.
func (d *Disabled) Run(ctx context.Context, ready func()) error {
	if err := haproxy.EndOrphans(d.Dir); err != nil {
		return err
	}
	ready()
	<-ctx.Done()
	return nil
}
