package session

import (
	"fmt"
	"sync"

	"k8s.io/client-go/tools/cache"

	"github.com/slipway-platform/slipway/controller"
)

// Index makes a shared informer find objects by the values that keys gives for them. Loops of several drivers may ask for the same index.
func (s *Session) Index(informer cache.SharedIndexInformer, name string, keys func(object any) []string) error {
	if _, there := informer.GetIndexer().GetIndexers()[name]; there {
		return nil
	}
	err := informer.AddIndexers(cache.Indexers{name: func(object any) ([]string, error) { return keys(object), nil }})
	if _, there := informer.GetIndexer().GetIndexers()[name]; there {
		return nil // perhaps another driver's loops were quicker
	}
	if err != nil {
		return fmt.Errorf("index objects by %s: %w", name, err)
	}
	return nil
}

// Locks are one lock for each key, for what loops with different keys must not do at once. The zero value is ready.
type Locks struct {
	mu   sync.Mutex
	held map[string]*lock
}

type lock struct {
	sync.Mutex
	users int
}

// Lock waits for the lock of a key and returns what gives it back.
func (l *Locks) Lock(key string) (unlock func()) {
	l.mu.Lock()
	if l.held == nil {
		l.held = map[string]*lock{}
	}
	k := l.held[key]
	if k == nil {
		k = &lock{}
		l.held[key] = k
	}
	k.users++
	l.mu.Unlock()
	k.Lock()
	return func() {
		k.Unlock()
		l.mu.Lock()
		defer l.mu.Unlock()
		if k.users--; k.users == 0 {
			delete(l.held, key)
		}
	}
}

// Feature makes the loops of one concern for a driver that is served. A driver that lacks what the concern needs gets none.
type Feature func(*Session) ([]controller.Loop, error)
