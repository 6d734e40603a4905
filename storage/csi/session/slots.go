package session

import "context"

// Slots limits the number of concurrent driver calls of one kind, independently of the number of
// workers. While some workers wait for the driver, other workers call the API server.
type Slots chan struct{}

// WorkersPerSlot is the number of workers per slot in a controller. Each volume also needs requests
// to the API server, so more workers than slots are needed to keep the driver busy.
const WorkersPerSlot = 4

// Acquire waits until a slot is free or ctx is done. release frees the slot.
func (p Slots) Acquire(ctx context.Context) (release func(), err error) {
	select {
	case p <- struct{}{}:
		return func() { <-p }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
