package session

import "context"

// Places bound how many calls of one kind a driver has at once, however many volumes are worked on: while some wait for the driver, others ask the API server.
type Places chan struct{}

// Ahead is how many volumes a loop works on for each place: enough to keep the driver busy though every volume takes several requests of the API server too.
const Ahead = 4

// Hold waits for a place for as long as ctx lasts, and returns what gives it back.
func (p Places) Hold(ctx context.Context) (leave func(), err error) {
	select {
	case p <- struct{}{}:
		return func() { <-p }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
