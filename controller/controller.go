// Package controller runs controllers, each with a typed work queue, backoff and workers. It also
// implements leader election with a Lease.
package controller

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// Key identifies an object that a controller reconciles. For a cluster-scoped object, the namespace
// is empty.
type Key = cache.ObjectName

// Controller is a control loop that reconciles keys of one kind.
type Controller struct {
	// Name describes the activity, such as "attach". It appears in logs and metrics.
	Name string
	// Watches determines which keys are reconciled after an object changes.
	Watches []Watch
	// Reads lists additional caches that Reconcile reads. Changes in these caches do not enqueue
	// keys.
	Reads []cache.SharedIndexInformer
	// Reconcile reads the current state for a key and performs the next steps. A key is never
	// reconciled by two workers at the same time. If Reconcile returns an error, the error is
	// logged and the key is retried with exponential backoff. Reconcile returns RequeueAfter to
	// requeue the key without an error.
	Reconcile func(ctx context.Context, key Key) error
	// Workers is the maximum number of keys that are reconciled at the same time. The default is
	// 10. Namespaces with waiting keys take turns.
	Workers int
	// NamespaceWorkers is the maximum number of keys in one namespace that are reconciled at the
	// same time. A lower value leaves workers for other tenants if one tenant's objects are slow.
	// The default is Workers.
	NamespaceWorkers int
	// Exclusion, if set, is shared by controllers that must not reconcile a key at the same time.
	Exclusion *Exclusion
	// MinBackoff is the backoff after the first error for a key. The backoff doubles with each
	// error, up to MaxBackoff. The defaults are 1 second and 5 minutes.
	MinBackoff, MaxBackoff time.Duration
	// Trigger, if set, adds keys to the queue independently of Watches.
	Trigger *Trigger
	// Metrics, if set, provides queue metrics: the queue depth, and the time that keys spend in the
	// queue and in Reconcile.
	Metrics workqueue.MetricsProvider
}

// Watch enqueues keys when objects change. The code that created the informer starts it.
type Watch struct {
	// Informer is a shared cache of objects.
	Informer cache.SharedIndexInformer
	// Keys returns the keys to reconcile when an object is added, changed or deleted. The default
	// is the object's own key.
	Keys func(object any) []Key
	// Changed, if set, reports whether a change is relevant. A controller that writes the objects
	// that it watches must set Changed. Otherwise, each write would enqueue the key again.
	Changed func(old, new any) bool
}

// RequeueAfter returns an error that requeues the key after a delay. The error does not count as a
// failure.
func RequeueAfter(d time.Duration) error { return &requeueAfter{d} }

type requeueAfter struct{ delay time.Duration }

func (r *requeueAfter) Error() string { return "requeue after " + r.delay.String() }

// requeueDelay returns the delay if err was created by RequeueAfter.
func requeueDelay(err error) (time.Duration, bool) {
	var requeue *requeueAfter
	if !errors.As(err, &requeue) {
		return 0, false
	}
	return requeue.delay, true
}

// Trigger adds keys to a controller's queue when no object has changed, for example for the
// differences that a periodic comparison finds. The zero value is ready for use.
type Trigger struct {
	mu  sync.Mutex
	add func(Key)
}

// Add enqueues a key if the controller is running. Otherwise, Add is a no-op, because a controller
// reconciles all keys when it starts.
func (t *Trigger) Add(key Key) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.add != nil {
		t.add(key)
	}
}

func (t *Trigger) connect(add func(Key)) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.add = add
}
