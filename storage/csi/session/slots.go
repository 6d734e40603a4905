package session

import "context"

// Slots limits the concurrent calls of one kind to a driver, independently of the number of
// workers: while some workers wait for the driver, others call the API server.
type Slots chan struct{}

// WorkersPerSlot is the number of a controller's workers per slot. It keeps the driver busy,
// although each volume also needs several requests to the API server.
const WorkersPerSlot = 4

// Acquire waits for a slot or the end of ctx. release frees the slot.
func (p Slots) Acquire(ctx context.Context) (release func(), err error) {
	select {
	case p <- struct{}{}:
		return func() { <-p }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
