package kube

import (
	"context"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc/metadata"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
)

const (
	// maxUncachedWatches is the maximum number of concurrent watches of a resource that etcd itself
	// serves. Two uncached watches cost less than a watch cache, which has 20 goroutines.
	maxUncachedWatches = 2
	// maxUncachedObjects is the size of a list, in objects, that starts the watch cache.
	maxUncachedObjects = 500
	// maxUncachedLists is the maximum number of lists from etcd in listPeriod that could be served
	// by a watch cache. Some admission plugins list their objects for each request.
	maxUncachedLists, listPeriod = 100, time.Minute
)

// watchCache combines a cacher.Cacher with its cacher.CacheDelegator.
type watchCache interface {
	storage.Interface
	// Wait returns when the cache contains all objects. It fails if the cache is stopped or ctx is
	// done.
	Wait(ctx context.Context) error
	// Ready reports whether the cache contains all objects.
	Ready() bool
	// LastSyncResourceVersion returns the cache's resource version. It is never lower than the
	// resource version of the cache's first list.
	LastSyncResourceVersion() (uint64, error)
}

// lazilyCached is a store that starts its watch cache only when the cache is worth its memory. This
// is the case for the third concurrent watch, after a long list, or after frequent lists. Upstream
// starts the watch caches of all resources. Most resources have no objects and only one watch, the
// garbage collector's.
//
// A watch that etcd serves receives a bookmark with each of etcd's progress notifications.
type lazilyCached struct {
	storage.Interface
	// newCache starts the watch cache. Its second result stops the cache.
	newCache func() (watchCache, func(), error)

	lock sync.Mutex
	// watches is the number of watches that etcd serves.
	watches int
	// lists is the number of lists since listsFrom that a cache could have served.
	lists     int
	listsFrom time.Time
	// cache is nil until it is started. It serves requests after it has become ready.
	cache  watchCache
	stop   func()
	serves bool
	// since is the earliest resource version from which the cache can serve changes.
	since  uint64
	closed bool
}

// current returns the cache if it serves requests. Otherwise, it returns the store.
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

// start starts the cache if it is not running.
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

// close stops the cache. The store cannot start another cache.
func (s *lazilyCached) close() {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.closed = true
	if s.cache != nil {
		s.stop()
	}
}

// reserve counts a watch and returns true if etcd can serve the watch without a cache.
func (s *lazilyCached) reserve() bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.cache != nil || s.watches >= maxUncachedWatches {
		return false
	}
	s.watches++
	return true
}

// release undoes reserve for one watch.
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

// covers reports whether the cache contains all changes since a resource version. It also returns
// true for an invalid version, for which the cache returns an error.
func (s *lazilyCached) covers(version string) bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	parsed, err := s.Versioner().ParseResourceVersion(version)
	return err != nil || parsed == 0 || parsed >= s.since
}

// watchStore returns a watch that etcd serves.
func (s *lazilyCached) watchStore(ctx context.Context, key string, options storage.ListOptions) (watch.Interface, error) {
	options.ProgressNotify = options.Predicate.AllowWatchBookmarks
	// A request's metadata selects the stream for its watch. Use the same metadata for all watches,
	// so that they share one stream.
	return s.Interface.Watch(metadata.NewOutgoingContext(ctx, metadata.MD{}), key, options)
}

// countedWatch is a watch that calls release when it is stopped.
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
	if err := s.current().GetList(ctx, key, options, list); err != nil {
		return err
	}
	if meta.LenList(list) < maxUncachedObjects && !s.listsOften(options) {
		return nil
	}
	_, err := s.start()
	return err
}

// listsOften counts a list, and reports whether lists that a cache could serve are frequent.
func (s *lazilyCached) listsOften(options storage.ListOptions) bool {
	if options.ResourceVersion != "0" {
		return false
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	if time.Since(s.listsFrom) > listPeriod {
		s.lists, s.listsFrom = 0, time.Now()
	}
	s.lists++
	return s.lists > maxUncachedLists
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
