// Package controller runs controllers, each with a typed work queue, back-off and workers. It
// also elects a leader with a Lease.
package controller

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// Key identifies an object that a controller reconciles. The namespace of a cluster-scoped key is
// empty.
type Key = cache.ObjectName

// Controller is a control controller: it reconciles keys of one kind.
type Controller struct {
	// Name is the activity, such as "attach", in logs and metrics.
	Name string
	// Watches determine the keys to reconcile after a change of an object.
	Watches []Watch
	// Reads are further caches that Reconcile reads. Their changes do not enqueue keys.
	Reads []cache.SharedIndexInformer
	// Reconcile reads the current state of a key and performs the next steps. It runs at most once at
	// a time for each key. An error is logged, and the key is retried with exponential back-off.
	// Reconcile returns RequeueAfter to requeue the key without an error.
	Reconcile func(ctx context.Context, key Key) error
	// Workers limits the number of keys that are reconciled at the same time. The default is 10.
	// Namespaces with waiting keys take turns.
	Workers int
	// NamespaceWorkers limits the number of keys of one namespace that are reconciled at the same
	// time, so that slow objects of a tenant leave workers to others. The default is Workers.
	NamespaceWorkers int
	// Exclusion, if set, is shared by controllers that must not reconcile a key at the same time.
	Exclusion *Exclusion
	// MinBackoff is the back-off after the first error of a key. It doubles up to MaxBackoff. The
	// defaults are 1 second and 5 minutes.
	MinBackoff, MaxBackoff time.Duration
	// Trigger, if set, adds further keys to the queue.
	Trigger *Trigger
	// Metrics, if set, provides metrics of the queue: its depth, and the time of keys in the queue
	// and in Reconcile.
	Metrics workqueue.MetricsProvider
}

// Watch enqueues keys when objects change. Its owner starts the informer.
type Watch struct {
	// Informer is a shared cache of objects.
	Informer cache.SharedIndexInformer
	// Keys returns the keys to reconcile for an object that was added, changed or deleted. The
	// default is the key of the object.
	Keys func(object any) []Key
	// Changed, if set, reports whether a change is relevant. A controller that writes its watched
	// objects needs it. Otherwise, each write would enqueue the key again.
	Changed func(old, new any) bool
}

// RequeueAfter returns an error that requeues the key after a delay. It does not count as a
// failure.
func RequeueAfter(d time.Duration) error { return &requeueAfter{d} }

type requeueAfter struct{ delay time.Duration }

func (r *requeueAfter) Error() string { return "requeue after " + r.delay.String() }

// requeueDelay returns the delay if err comes from RequeueAfter.
func requeueDelay(err error) (time.Duration, bool) {
	var requeue *requeueAfter
	if !errors.As(err, &requeue) {
		return 0, false
	}
	return requeue.delay, true
}

// Trigger adds keys to the queue of a controller without a change of an object, such as the
// findings of a periodic comparison. The zero value is ready for use.
type Trigger struct {
	mu  sync.Mutex
	add func(Key)
}

// Add enqueues a key if the controller runs. A controller that starts later reconciles all keys.
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
