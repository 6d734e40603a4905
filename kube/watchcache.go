package kube

import (
	"context"
	"fmt"
	"sync"

	"google.golang.org/grpc/metadata"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
)

const (
	// maxUncachedWatches is the number of watches of a resource at the same time that etcd serves
	// itself. Two of them cost less than a watch cache, which has 20 goroutines.
	maxUncachedWatches = 2
	// maxUncachedObjects is the number of objects from which a list starts the watch cache.
	maxUncachedObjects = 500
)

// watchCache is a cacher.Cacher with its cacher.CacheDelegator.
type watchCache interface {
	storage.Interface
	// Wait returns when the cache contains all objects. It fails if the cache is stopped or ctx ends.
	Wait(ctx context.Context) error
	// Ready returns whether the cache contains all objects.
	Ready() bool
	// LastSyncResourceVersion returns the resource version of the cache, which is at least that of its
	// first list.
	LastSyncResourceVersion() (uint64, error)
}

// lazilyCached is a store whose watch cache starts when it is worth its memory: with the third
// concurrent watch, or with a long list. Upstream starts the caches of all resources. Most of them
// have no objects and one watch, that of the garbage collector.
//
// A watch that etcd serves gets a bookmark with each of etcd's notifications of progress.
type lazilyCached struct {
	storage.Interface
	// newCache starts the watch cache. Its second result ends it.
	newCache func() (watchCache, func(), error)

	lock sync.Mutex
	// watches is the number of watches that etcd serves.
	watches int
	// cache is nil until it is started, and serves requests once it was ready.
	cache  watchCache
	stop   func()
	serves bool
	// since is the resource version from which the cache has all changes.
	since  uint64
	closed bool
}

// current returns the cache if it serves requests, otherwise the store.
func (s *lazilyCached) current() storage.Interface {
	s.lock.Lock()
	cache, serves := s.cache, s.serves
	s.lock.Unlock()
	if serves {
		return cache
	}
	if cache == nil || !cache.Ready() {
		return s.Interface
	}
	since, err := cache.LastSyncResourceVersion()
	if err != nil {
		return s.Interface
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	if !s.serves {
		s.serves, s.since = true, since
	}
	return cache
}

// start starts the cache if it does not run.
func (s *lazilyCached) start() (watchCache, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.cache != nil {
		return s.cache, nil
	}
	if s.closed {
		return nil, storage.ErrStorageNotReady
	}
	cache, stop, err := s.newCache()
	if err != nil {
		return nil, fmt.Errorf("start watch cache: %w", err)
	}
	s.cache, s.stop = cache, stop
	return cache, nil
}

// close ends the cache. The store can't start another one.
func (s *lazilyCached) close() {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.closed = true
	if s.cache != nil {
		s.stop()
	}
}

// reserve counts a watch and returns true if etcd can serve it without a cache.
func (s *lazilyCached) reserve() bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.cache != nil || s.watches >= maxUncachedWatches {
		return false
	}
	s.watches++
	return true
}

// release ends the reservation of a watch.
func (s *lazilyCached) release() {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.watches--
}

// Watch implements storage.Interface.
func (s *lazilyCached) Watch(ctx context.Context, key string, options storage.ListOptions) (watch.Interface, error) {
	if s.reserve() {
		watcher, err := s.watchStore(ctx, key, options)
		if err != nil {
			s.release()
			return nil, err
		}
		return &countedWatch{watcher, sync.OnceFunc(s.release)}, nil
	}
	cache, err := s.start()
	if err != nil {
		return nil, err
	}
	if err := cache.Wait(ctx); err != nil {
		return nil, err
	}
	if current := s.current(); current != s.Interface && s.covers(options.ResourceVersion) {
		return current.Watch(ctx, key, options)
	}
	return s.watchStore(ctx, key, options)
}

// covers returns whether the cache has all changes since the resource version. An invalid one is an
// error that the cache returns.
func (s *lazilyCached) covers(version string) bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	parsed, err := s.Versioner().ParseResourceVersion(version)
	return err != nil || parsed == 0 || parsed >= s.since
}

// watchStore returns a watch that etcd serves.
func (s *lazilyCached) watchStore(ctx context.Context, key string, options storage.ListOptions) (watch.Interface, error) {
	options.ProgressNotify = options.Predicate.AllowWatchBookmarks
	// The metadata of a request select the stream of its watch. All of these watches share one.
	return s.Interface.Watch(metadata.NewOutgoingContext(ctx, metadata.MD{}), key, options)
}

// countedWatch is a watch that ends its reservation when it is stopped.
type countedWatch struct {
	watch.Interface
	release func()
}

// Stop implements watch.Interface.
func (w *countedWatch) Stop() {
	w.Interface.Stop()
	w.release()
}

// GetList implements storage.Interface.
func (s *lazilyCached) GetList(ctx context.Context, key string, options storage.ListOptions, list runtime.Object) error {
	if err := s.current().GetList(ctx, key, options, list); err != nil || meta.LenList(list) < maxUncachedObjects {
		return err
	}
	_, err := s.start()
	return err
}

// Get implements storage.Interface.
func (s *lazilyCached) Get(ctx context.Context, key string, options storage.GetOptions, into runtime.Object) error {
	return s.current().Get(ctx, key, options, into)
}

// Delete implements storage.Interface.
func (s *lazilyCached) Delete(ctx context.Context, key string, out runtime.Object, preconditions *storage.Preconditions,
	validate storage.ValidateObjectFunc, existing runtime.Object, options storage.DeleteOptions) error {
	return s.current().Delete(ctx, key, out, preconditions, validate, existing, options)
}

// GuaranteedUpdate implements storage.Interface.
func (s *lazilyCached) GuaranteedUpdate(ctx context.Context, key string, into runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, update storage.UpdateFunc, existing runtime.Object) error {
	return s.current().GuaranteedUpdate(ctx, key, into, ignoreNotFound, preconditions, update, existing)
}

// Stats implements storage.Interface.
func (s *lazilyCached) Stats(ctx context.Context) (storage.Stats, error) {
	return s.current().Stats(ctx)
}

// ReadinessCheck implements storage.Interface.
func (s *lazilyCached) ReadinessCheck() error { return s.current().ReadinessCheck() }

// CompactRevision implements storage.Interface.
func (s *lazilyCached) CompactRevision() int64 { return s.current().CompactRevision() }
