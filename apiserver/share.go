package apiserver

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// shares limits each tenant's in-flight requests, so that one tenant cannot use all of the API
// server's memory or CPU time. Additional requests wait for their turn.
type shares struct {
	// requests is the maximum number of in-flight requests for each tenant. waiting is the maximum
	// number of waiting requests. It is low, because a waiting request occupies a priority and
	// fairness seat.
	requests, waiting int
	timeout           time.Duration
	// remedy is the part of the error message after "has too many". The default is the text for
	// large requests.
	remedy string

	mu      sync.Mutex
	tenants map[string]*share
}

// share counts a tenant's requests, including waiting requests.
type share struct {
	turns chan struct{}
	count int
}

// shareRetrySeconds is the delay in seconds after which clients can retry a rejected request.
const shareRetrySeconds = 1

// acquire waits until the number of a tenant's requests is below the limit. The caller must call
// release when the request is finished. acquire returns a too-many-requests error if too many
// requests are waiting, if the timeout expires, or if ctx is done.
func (s *shares) acquire(ctx context.Context, tenant string) (release func(), err error) {
	remedy := cmp.Or(s.remedy, "large requests at the same time; send them one after the other")
	busy := apierrors.NewTooManyRequests(fmt.Sprintf("%s has too many %s", tenant, remedy), shareRetrySeconds)
	own, ok := s.join(tenant)
	if !ok {
		return nil, busy
	}
	timeout := time.NewTimer(s.timeout)
	defer timeout.Stop()
	select {
	case own.turns <- struct{}{}:
		return func() { <-own.turns; s.leave(tenant) }, nil
	case <-timeout.C:
	case <-ctx.Done():
	}
	s.leave(tenant)
	return nil, busy
}

func (s *shares) join(tenant string) (own *share, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if own = s.tenants[tenant]; own == nil {
		own = &share{turns: make(chan struct{}, s.requests)}
	}
	if own.count >= s.requests+s.waiting {
		return nil, false
	}
	if s.tenants == nil {
		s.tenants = map[string]*share{}
	}
	s.tenants[tenant] = own
	own.count++
	return own, true
}

func (s *shares) leave(tenant string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if own := s.tenants[tenant]; own.count > 1 {
		own.count--
		return
	}
	delete(s.tenants, tenant)
}
