package apiserver

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// shares limits the requests that each tenant has in progress at the same time, so that one tenant
// cannot use all memory or processors of the API server. Further requests wait for their turn.
type shares struct {
	// requests is the limit for each tenant, and waiting the number of requests that can wait. A
	// request that waits occupies a seat of priority and fairness, so the number is small.
	requests, waiting int
	timeout           time.Duration
	// remedy is the part of the error after "has too many". The default is the remedy for large
	// requests.
	remedy string

	mu      sync.Mutex
	tenants map[string]*share
}

// share counts the requests of a tenant, including waiting ones.
type share struct {
	turns chan struct{}
	count int
}

// shareRetrySeconds is the delay after which clients repeat a rejected request.
const shareRetrySeconds = 1

// acquire waits until a tenant has fewer requests than the limit. The caller must call release when
// the request ends. The error is of kind too many requests if too many requests wait, or if the
// timeout or ctx ends.
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
