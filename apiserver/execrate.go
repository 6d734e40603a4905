package apiserver

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// execRate and execBurst limit the number of commands per second that a tenant starts in
// containers. For each command, the container runtime starts processes that require several
// megabytes, which the pod's limits do not include. Commands above the rate wait for at most
// execTimeout.
const (
	execRate, execBurst = 10, 20
	execTimeout         = 30 * time.Second
)

// rates limits the number of events per second for each tenant.
type rates struct {
	perSecond rate.Limit
	burst     int
	timeout   time.Duration

	mu       sync.Mutex
	limiters map[string]*rate.Limiter
}

// wait waits until the tenant is allowed to cause an event. It returns a too-many-requests error if
// the wait would exceed the timeout.
func (r *rates) wait(ctx context.Context, tenant string) error {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	if err := r.of(tenant).Wait(ctx); err != nil {
		return apierrors.NewTooManyRequests(fmt.Sprintf("%s starts too many commands in containers; start at most %v in a second", tenant, r.perSecond), shareRetrySeconds)
	}
	return nil
}

// of returns a tenant's limiter. To save memory, it removes limiters that have not been used for a
// while. A new limiter has the same state as a removed limiter.
func (r *rates) of(tenant string) *rate.Limiter {
	r.mu.Lock()
	defer r.mu.Unlock()
	limiter, ok := r.limiters[tenant]
	if !ok {
		for other, unused := range r.limiters {
			if unused.Tokens() >= float64(r.burst) {
				delete(r.limiters, other)
			}
		}
		if r.limiters == nil {
			r.limiters = map[string]*rate.Limiter{}
		}
		limiter = rate.NewLimiter(r.perSecond, r.burst)
		r.limiters[tenant] = limiter
	}
	return limiter
}
