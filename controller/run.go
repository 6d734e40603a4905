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

// Manager is a group of controllers that start and stop together. Each controller has its own queue
// and workers.
type Manager []Controller

// Run reconciles until ctx is done and all workers have returned. It calls ready when all
// controllers are running. The caller must start the informers. A controller starts when the
// informers in its Watches and Reads have synced.
func (m Manager) Run(ctx context.Context, ready func()) error {
	var runners []*runner
	defer func() {
		for _, r := range runners {
			r.close()
		}
	}()
	for _, controller := range m {
		r, err := newRunner(controller)
		if err != nil {
			return err
		}
		runners = append(runners, r)
		if err := r.watch(); err != nil && ctx.Err() == nil { // informers can stop during shutdown
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

// runner runs a controller with its queue.
type runner struct {
	Controller
	queue  workqueue.TypedRateLimitingInterface[Key]
	share  share
	synced []cache.InformerSynced
	remove []func() // functions that remove the event handlers
}

const (
	defaultWorkers    = 10
	defaultMinBackoff = time.Second
	defaultMaxBackoff = 5 * time.Minute
)

func newRunner(controller Controller) (*runner, error) {
	if controller.Name == "" || controller.Reconcile == nil || len(controller.Watches) == 0 {
		return nil, fmt.Errorf("run controller %q: it needs a name, a watch and a function Reconcile", controller.Name)
	}
	controller.Workers = orDefault(controller.Workers, defaultWorkers)
	limit := workqueue.NewTypedItemExponentialFailureRateLimiter[Key](orDefault(controller.MinBackoff, defaultMinBackoff), orDefault(controller.MaxBackoff, defaultMaxBackoff))
	name := ""
	if controller.Metrics != nil {
		name = controller.Name
	}
	fair := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[Key]{Name: name, MetricsProvider: controller.Metrics, Queue: &turns{}})
	delaying := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[Key]{Name: name, MetricsProvider: controller.Metrics, Queue: fair})
	queue := workqueue.NewTypedRateLimitingQueueWithConfig(limit, workqueue.TypedRateLimitingQueueConfig[Key]{DelayingQueue: delaying})
	return &runner{Controller: controller, queue: queue, share: share{limit: controller.NamespaceWorkers}}, nil
}

func orDefault[N int | time.Duration](value, fallback N) N {
	if value > 0 {
		return value
	}
	return fallback
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
			return fmt.Errorf("watch for controller %q: %w", r.Name, err)
		}
		r.synced = append(r.synced, handle.HasSynced)
		r.remove = append(r.remove, func() { _ = watch.Informer.RemoveEventHandler(handle) })
	}
	return nil
}

// close removes the event handlers and shuts down the queue.
func (r *runner) close() {
	for _, remove := range r.remove {
		remove()
	}
	r.Trigger.connect(nil)
	r.queue.ShutDown()
}

// run processes the queue until ctx is done.
func (r *runner) run(ctx context.Context, started func()) {
	synced := cache.WaitForCacheSync(ctx.Done(), r.synced...)
	started()
	if !synced {
		return
	}
	defer context.AfterFunc(ctx, r.queue.ShutDown)()
	// Start goroutines only for queued keys, because most controllers are idle.
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
			add(old) // keys of the old object might have to be reconciled too
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
	if !r.share.acquire(key) {
		return
	}
	defer r.share.release(key, r.queue.Add)
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
		slog.Warn("cannot reconcile object", "controller", r.Name, "object", key.String(), "error", err, "count", r.queue.NumRequeues(key)+1)
		r.queue.AddRateLimited(key)
	}
}

// reconcile recovers from panics, so that other controllers keep running.
func (r *runner) reconcile(ctx context.Context, key Key) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("reconcile %q: panic: %v\n%s", key, cause, debug.Stack())
		}
	}()
	return r.Reconcile(ctx, key)
}
