package catalogcontroller

import (
	"context"
	"errors"
	"sync"

	"github.com/slipway-platform/slipway/controller"
)

const (
	// workers limits the requests to all brokers at the same time, for each kind of object.
	workers = 100
	// maxRequests limits the requests to a ClusterServiceBroker, or to all ServiceBrokers of a
	// project, at the same time. A broker that hangs therefore delays no other broker.
	maxRequests = 4
)

// errBusy means that a broker has maxRequests requests.
var errBusy = errors.New("the broker has reached the limit of concurrent requests")

// requests counts the requests in progress. The zero value is ready for use.
type requests struct {
	mu     sync.Mutex
	counts map[controller.Key]int
}

// acquire counts a request. It returns false if the broker has maxRequests requests.
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

// interrupted reports whether a request has no result: because the process ends, or because the
// broker is busy. If so, it also returns the result of the reconciliation, which retries the
// request.
func (r *reconciler) interrupted(ctx context.Context, err error) (result error, ok bool) {
	switch {
	case ctx.Err() != nil:
		return nil, true
	case errors.Is(err, errBusy):
		return controller.RequeueAfter(r.timing.MinBackoff), true
	}
	return nil, false
}
