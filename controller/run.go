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

// Set is a group of loops that start and end together. Each has its own queue and workers.
type Set []Loop

// Run reconciles until ctx ends and all workers have returned. It calls ready when all loops run.
// The caller must start the informers. A loop starts when the informers in its Watches and Reads
// have synced.
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
		if err := r.watch(); err != nil && ctx.Err() == nil { // informers may end first
			return err
		}
	}
	var started, running sync.WaitGroup
	for _, r := range runners {
		started.Add(1)
		running.Go(func() { r.run(ctx, started.Done) })
	}
	running.Go(func() {
		started.Wait()
		if ctx.Err() == nil {
			ready()
		}
	})
	running.Wait()
	return nil
}

// runner runs a loop with its queue.
type runner struct {
	Loop
	queue  workqueue.TypedRateLimitingInterface[Key]
	synced []cache.InformerSynced
	remove []func() // functions that remove the event handlers
}

const (
	defaultWorkers  = 10
	defaultRetry    = time.Second
	defaultRetryMax = 5 * time.Minute
)

func newRunner(loop Loop) (*runner, error) {
	if loop.Name == "" || loop.Reconcile == nil || len(loop.Watches) == 0 {
		return nil, fmt.Errorf("run loop %q: it needs a name, a watch and a function Reconcile", loop.Name)
	}
	loop.Workers = orDefault(loop.Workers, defaultWorkers)
	limit := workqueue.NewTypedItemExponentialFailureRateLimiter[Key](orDefault(loop.Retry, defaultRetry), orDefault(loop.RetryMax, defaultRetryMax))
	config := workqueue.TypedRateLimitingQueueConfig[Key]{MetricsProvider: loop.Metrics}
	if loop.Metrics != nil {
		config.Name = loop.Name
	}
	return &runner{Loop: loop, queue: workqueue.NewTypedRateLimitingQueueWithConfig(limit, config)}, nil
}

func orDefault[N int | time.Duration](value, otherwise N) N {
	if value > 0 {
		return value
	}
	return otherwise
}

// watch adds event handlers to the informers.
func (r *runner) watch() error {
	r.Trigger.connect(r.queue.Add)
	for _, informer := range r.Reads {
		r.synced = append(r.synced, informer.HasSynced)
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

// close removes the event handlers and shuts the queue down.
func (r *runner) close() {
	for _, remove := range r.remove {
		remove()
	}
	r.Trigger.connect(nil)
	r.queue.ShutDown()
}

// run processes the queue until ctx ends.
func (r *runner) run(ctx context.Context, started func()) {
	synced := cache.WaitForCacheSync(ctx.Done(), r.synced...)
	started()
	if !synced {
		return
	}
	defer context.AfterFunc(ctx, r.queue.ShutDown)()
	// A goroutine exists for each key only, because most loops are idle.
	var workers sync.WaitGroup
	defer workers.Wait()
	for slots := make(chan struct{}, r.Workers); ; {
		slots <- struct{}{}
		key, shutdown := r.queue.Get()
		if shutdown {
			return
		}
		workers.Go(func() {
			defer func() { <-slots }()
			r.work(ctx, key)
		})
	}
}

func (r *runner) handler(watch Watch) cache.ResourceEventHandler {
	add := func(object any) {
		if tombstone, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = tombstone.Obj
		}
		for _, key := range keysOf(watch, object) {
			r.queue.Add(key)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: add,
		UpdateFunc: func(old, new any) {
			if watch.Changed != nil && !watch.Changed(old, new) {
				return
			}
			add(old) // keys of the old object may have to be reconciled too
			add(new)
		},
		DeleteFunc: add,
	}
}

func keysOf(watch Watch, object any) []Key {
	if watch.Keys != nil {
		return watch.Keys(object)
	}
	key, err := cache.ObjectToName(object)
	if err != nil {
		return nil
	}
	return []Key{key}
}

// work reconciles one key from the queue.
func (r *runner) work(ctx context.Context, key Key) {
	defer r.queue.Done(key)
	if !r.Exclusion.acquire(key, func() { r.queue.Add(key) }) {
		return
	}
	defer r.Exclusion.release(key)
	err := r.reconcile(ctx, key)
	wait, isRequeue := requeueDelay(err)
	switch {
	case err == nil:
		r.queue.Forget(key)
	case isRequeue:
		r.queue.Forget(key)
		r.queue.AddAfter(key, wait)
	case ctx.Err() == nil:
		slog.Warn("reconcile", "loop", r.Name, "key", key.String(), "error", err, "failures", r.queue.NumRequeues(key)+1)
		r.queue.AddRateLimited(key)
	}
}

// reconcile recovers panics, so that other loops continue.
func (r *runner) reconcile(ctx context.Context, key Key) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("reconcile %q: panic: %v\n%s", key, cause, debug.Stack())
		}
	}()
	return r.Reconcile(ctx, key)
}
