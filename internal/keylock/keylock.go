// Package keylock provides one lock per key.
package keylock

import "sync"

// Locks contains one lock per key, for work on the same object that must not run concurrently. The
// zero value is ready to use.
type Locks struct {
	mu    sync.Mutex
	locks map[string]*lock
}

type lock struct {
	sync.Mutex
	users int
}

// Lock locks a key and returns a function that unlocks it.
func (l *Locks) Lock(key string) (unlock func()) {
	l.mu.Lock()
	if l.locks == nil {
		l.locks = map[string]*lock{}
	}
	k := l.locks[key]
	if k == nil {
		k = &lock{}
		l.locks[key] = k
	}
	k.users++
	l.mu.Unlock()
	k.Lock()
	return func() {
		k.Unlock()
		l.mu.Lock()
		defer l.mu.Unlock()
		if k.users--; k.users == 0 {
			delete(l.locks, key)
		}
	}
}
