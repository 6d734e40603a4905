package registry

import (
	"context"
	"errors"
	"sync"
)

// Limits for one client's requests to the API server. A client is an address or a token.
const (
	// maxShare is a quarter of maxLookups, so that one client leaves slots for three other clients.
	maxShare = maxLookups / 4
	// maxWaiting is the maximum number of a client's waiting requests. It also limits the memory
	// that they use.
	maxWaiting = 1024
)

// errBusy means that a client has too many active and waiting requests.
var errBusy = errors.New("too many concurrent requests; try again later")

// shares divides the slots for API server requests among clients.
type shares struct {
	mu      sync.Mutex
	clients map[string]*share
}

// share contains one client's slots.
type share struct {
	running slots
	count   int // active and waiting requests
}

func newShares() *shares { return &shares{clients: map[string]*share{}} }

// take waits for one of a client's slots. It returns errBusy if too many of the client's requests
// are already waiting.
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
