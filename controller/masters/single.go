package masters

import (
	"context"
	"errors"
)

// Single replaces the leader election on the only master. Run returns when another master joins, so
// that the control plane restarts as one of several masters.
type Single struct {
	// Expanded is closed when another master joins.
	Expanded <-chan struct{}
}

// Name returns the component's name.
func (Single) Name() string { return "leadership" }

// Run waits for another master.
func (s Single) Run(ctx context.Context, ready func()) error {
	ready()
	select {
	case <-ctx.Done():
		return nil
	case <-s.Expanded:
		return errors.New("a second master is joining; the control plane restarts as one of several")
	}
}
