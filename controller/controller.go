// Package controller is the engine of control loops: typed work queues with back-off, workers, and leader election by Lease. It knows
// nothing of what its loops reconcile.
package controller

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// Key names what a loop reconciles: namespace and name; the namespace is empty for what has none.
type Key = cache.ObjectName

// Loop brings one kind of thing, key by key, to the state that it should have.
type Loop struct {
	// Name is what the loop does, such as "attach"; logs and metrics carry it.
	Name string
	// Watches say which objects' changes cause which keys to be reconciled.
	Watches []Watch
	// Reads are caches that Reconcile looks things up in though none of their changes wakes the loop.
	Reads []cache.SharedIndexInformer
	// Reconcile looks at the present state of a key and does the next steps. An error is logged, and the key tried again with a growing
	// delay; After asks for another look without being an error. The same key is never reconciled twice at once.
	Reconcile func(ctx context.Context, key Key) error
	// Workers is how many keys are reconciled at once; 0 means 10.
	Workers int
	// Exclusion, if set, is shared by loops that must not work on one key at the same time.
	Exclusion *Exclusion
	// Retry is the delay after the first failure of a key, which doubles up to RetryMax; 0 means 1 second and 5 minutes.
	Retry, RetryMax time.Duration
	// Calls, if set, bring further keys to the queue.
	Calls *Calls
	// Metrics, if set, measure the queue: its depth, how long keys wait and how long they take.
	Metrics workqueue.MetricsProvider
}

// Watch wakes a loop when objects change. The informer is started by whoever made it.
type Watch struct {
	// Informer is the shared cache of the objects.
	Informer cache.SharedIndexInformer
	// Keys are what must be reconciled when an object is there, has changed or is gone; nil means the object itself.
	Keys func(object any) []Key
	// Changed, if set, tells whether a change matters. Loops that write the objects that they watch need it, or each of their own writes
	// would wake them.
	Changed func(old, new any) bool
}

// After is what Reconcile returns when nothing went wrong and the key should be looked at again after a while.
func After(d time.Duration) error { return &again{d} }

type again struct{ delay time.Duration }

func (a *again) Error() string { return "look again after " + a.delay.String() }

// delay is what After was told, if err comes from it.
func delay(err error) (time.Duration, bool) {
	var a *again
	if !errors.As(err, &a) {
		return 0, false
	}
	return a.delay, true
}

// Calls bring keys to the queue of a loop that no change of an object would, such as what a periodic comparison has found. The zero value is
// ready.
type Calls struct {
	mu  sync.Mutex
	add func(Key)
}

// Add lets the loop reconcile a key, if it runs; one that starts reconciles everything anyway.
func (c *Calls) Add(key Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.add != nil {
		c.add(key)
	}
}

func (c *Calls) connect(add func(Key)) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.add = add
}
