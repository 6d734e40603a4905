package apiserver

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/slipway-platform/slipway/internal/ratelimit"
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
	limiters ratelimit.Limiters[string]
	timeout  time.Duration
}

// wait waits until the tenant is allowed to cause an event. It returns a too-many-requests error if
// the wait would exceed the timeout.
func (r *rates) wait(ctx context.Context, tenant string) error {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	if err := r.limiters.At(tenant, time.Now()).Wait(ctx); err != nil {
		return apierrors.NewTooManyRequests(fmt.Sprintf("%s starts too many commands in containers; start at most %v in a second", tenant, r.limiters.Rate), shareRetrySeconds)
	}
	return nil
}
