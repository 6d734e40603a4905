package catalogcontroller

import (
	"context"
	"errors"
	"sync"

	"github.com/slipway-platform/slipway/controller"
)

const (
	// workers is the maximum number of concurrent requests to all brokers, for each kind of object.
	workers = 100
	// maxRequests is the maximum number of concurrent requests to one ClusterServiceBroker, or to
	// all ServiceBrokers in a project. This limit prevents a hanging broker from delaying other
	// brokers.
	maxRequests = 4
)

// errBusy means that a broker already has maxRequests requests in flight.
var errBusy = errors.New("the broker has reached the limit of concurrent requests")

// requests counts in-flight requests. The zero value is ready for use.
type requests struct {
	mu     sync.Mutex
	counts map[controller.Key]int
}

// acquire counts a new request. It returns false if the broker already has maxRequests requests in
// flight.
func (r *requests) acquire(broker *brokerView) (release func(), ok bool) {
	key := controller.Key{Namespace: broker.namespace}
	if broker.namespace == "" {
		key.Name = broker.name
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.counts[key] >= maxRequests {
		return nil, false
	}
	if r.counts == nil {
		r.counts = map[controller.Key]int{}
	}
	r.counts[key]++
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.counts[key]--; r.counts[key] == 0 {
			delete(r.counts, key)
		}
	}, true
}

// interrupted reports whether a request has no outcome because the process is shutting down or the
// broker is busy. If so, interrupted also returns the reconcile result, which retries the request.
func (r *reconciler) interrupted(ctx context.Context, err error) (result error, ok bool) {
	switch {
	case ctx.Err() != nil:
		return nil, true
	case errors.Is(err, errBusy):
		return controller.RequeueAfter(r.timing.MinBackoff), true
	}
	return nil, false
}
