package registry

import (
	"context"
	"errors"
	"sync"
)

// The limits of one client, that is of one address or one token, while the API server decides about
// its requests.
const (
	// maxShare is a quarter of maxLookups: three other clients always find a place.
	maxShare = maxLookups / 4
	// maxWaiting bounds the requests that wait for their turn, and so the memory that they take.
	maxWaiting = 1024
)

// errBusy rejects a request of a client that has too many others.
var errBusy = errors.New("too many requests at once: try again later")

// shares divides the questions to the API server among clients, so that no client takes them all.
type shares struct {
	mu      sync.Mutex
	clients map[string]*share
}

// share is the part of one client.
type share struct {
	running slots
	count   int // of requests that run or wait
}

func newShares() *shares { return &shares{clients: map[string]*share{}} }

// take waits for the turn of a client. It fails with errBusy if too many requests wait already.
func (s *shares) take(ctx context.Context, client string) (free func(), err error) {
	share, err := s.join(client)
	if err != nil {
		return nil, err
	}
	release, err := share.running.take(ctx)
	if err != nil {
		s.leave(client)
		return nil, err
	}
	return func() {
		release()
		s.leave(client)
	}, nil
}

func (s *shares) join(client string) (*share, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.clients[client]
	if own == nil {
		own = &share{running: make(slots, maxShare)}
		s.clients[client] = own
	}
	if own.count == maxShare+maxWaiting {
		return nil, errBusy
	}
	own.count++
	return own, nil
}

func (s *shares) leave(client string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if share := s.clients[client]; share != nil {
		if share.count--; share.count == 0 {
			delete(s.clients, client)
		}
	}
}
