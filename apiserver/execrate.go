package apiserver

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// execRate and execBurst limit the commands per second that a tenant starts in containers. Each
// command starts processes of the container runtime, with several megabytes, outside of the pod's
// limits. Commands above the rate wait for at most execTimeout.
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

// wait waits until the tenant may cause an event. It returns a too-many-requests error if this
// would take too long.
func (r *rates) wait(ctx context.Context, tenant string) error {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	if err := r.of(tenant).Wait(ctx); err != nil {
		return apierrors.NewTooManyRequests(fmt.Sprintf("%s starts too many commands in containers; start at most %v in a second", tenant, r.perSecond), shareRetrySeconds)
	}
	return nil
}

// of returns a tenant's limiter. It removes the limiters of tenants that caused no event for a
// while, because new limiters have the same state.
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
