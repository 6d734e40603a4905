package controller

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// Set is loops that live and end together, each with its own queue and workers.
type Set []Loop

// Run reconciles until ctx ends, and returns when the last worker has. It calls ready when every loop works. The informers must be
// started by the caller; a loop begins when those that it watches and reads are filled.
func (s Set) Run(ctx context.Context, ready func()) error {
	var runners []*runner
	defer func() {
		for _, r := range runners {
			r.close()
		}
	}()
	for _, loop := range s {
		r, err := newRunner(loop)
		if err != nil {
			return err
		}
		runners = append(runners, r)
		if err := r.watch(); err != nil && ctx.Err() == nil { // informers may end a little earlier than their loops
			return err
		}
	}
	var began, ended sync.WaitGroup
	for _, r := range runners {
		began.Add(1)
		ended.Go(func() { r.run(ctx, began.Done) })
	}
	ended.Go(func() {
		began.Wait()
		if ctx.Err() == nil {
			ready()
		}
	})
	ended.Wait()
	return nil
}

// runner is a loop with its queue.
type runner struct {
	Loop
	queue  workqueue.TypedRateLimitingInterface[Key]
	synced []cache.InformerSynced
	remove []func() // takes the handlers out of the informers
}

const (
	defaultWorkers  = 10
	defaultRetry    = time.Second
	defaultRetryMax = 5 * time.Minute
)

func newRunner(loop Loop) (*runner, error) {
	if loop.Name == "" || loop.Reconcile == nil || len(loop.Watches) == 0 {
		return nil, fmt.Errorf("run loop %q: it needs a name, something to watch and a function that reconciles", loop.Name)
	}
	loop.Workers = positive(loop.Workers, defaultWorkers)
	limit := workqueue.NewTypedItemExponentialFailureRateLimiter[Key](positive(loop.Retry, defaultRetry), positive(loop.RetryMax, defaultRetryMax))
	config := workqueue.TypedRateLimitingQueueConfig[Key]{MetricsProvider: loop.Metrics}
	if loop.Metrics != nil {
		config.Name = loop.Name
	}
	return &runner{Loop: loop, queue: workqueue.NewTypedRateLimitingQueueWithConfig(limit, config)}, nil
}

func positive[N int | time.Duration](value, otherwise N) N {
	if value > 0 {
		return value
	}
	return otherwise
}

// watch lets the watched informers fill the queue.
func (r *runner) watch() error {
	r.Calls.connect(r.queue.Add)
	for _, read := range r.Reads {
		r.synced = append(r.synced, read.HasSynced)
	}
	for _, watch := range r.Watches {
		handle, err := watch.Informer.AddEventHandler(r.handler(watch))
		if err != nil {
			return fmt.Errorf("watch for loop %q: %w", r.Name, err)
		}
		r.synced = append(r.synced, handle.HasSynced)
		r.remove = append(r.remove, func() { _ = watch.Informer.RemoveEventHandler(handle) })
	}
	return nil
}

// close ends the queue and takes the handlers out of the informers.
func (r *runner) close() {
	for _, remove := range r.remove {
		remove()
	}
	r.Calls.connect(nil)
	r.queue.ShutDown()
}

// run works on the queue until ctx ends.
func (r *runner) run(ctx context.Context, began func()) {
	filled := cache.WaitForCacheSync(ctx.Done(), r.synced...)
	began()
	if !filled {
		return
	}
	defer context.AfterFunc(ctx, r.queue.ShutDown)()
	// A worker exists while it has a key: most loops of most processes have nothing to do.
	var workers sync.WaitGroup
	defer workers.Wait()
	for places := make(chan struct{}, r.Workers); ; {
		places <- struct{}{}
		key, end := r.queue.Get()
		if end {
			return
		}
		workers.Go(func() {
			defer func() { <-places }()
			r.work(ctx, key)
		})
	}
}

func (r *runner) handler(watch Watch) cache.ResourceEventHandler {
	add := func(object any) {
		if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = last.Obj
		}
		for _, key := range keys(watch, object) {
			r.queue.Add(key)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: add,
		UpdateFunc: func(old, new any) {
			if watch.Changed != nil && !watch.Changed(old, new) {
				return
			}
			add(old) // what an object no longer concerns may have to act too
			add(new)
		},
		DeleteFunc: add,
	}
}

func keys(watch Watch, object any) []Key {
	if watch.Keys != nil {
		return watch.Keys(object)
	}
	key, err := cache.ObjectToName(object)
	if err != nil {
		return nil
	}
	return []Key{key}
}

// work reconciles one key of the queue.
func (r *runner) work(ctx context.Context, key Key) {
	defer r.queue.Done(key)
	if !r.Exclusion.acquire(key, func() { r.queue.Add(key) }) {
		return
	}
	defer r.Exclusion.release(key)
	err := r.reconcile(ctx, key)
	wait, again := delay(err)
	switch {
	case err == nil:
		r.queue.Forget(key)
	case again:
		r.queue.Forget(key)
		r.queue.AddAfter(key, wait)
	case ctx.Err() == nil:
		slog.Warn("reconcile", "loop", r.Name, "key", key.String(), "error", err, "failures", r.queue.NumRequeues(key)+1)
		r.queue.AddRateLimited(key)
	}
}

// reconcile keeps a mistake in one loop from ending the others.
func (r *runner) reconcile(ctx context.Context, key Key) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("reconcile %q: panic: %v\n%s", key, cause, debug.Stack())
		}
	}()
	return r.Reconcile(ctx, key)
}
