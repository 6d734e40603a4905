package controller

import "sync"

// Exclusion prevents several controllers from reconciling the same key at the same time. For
// example, a volume must not be attached and detached at the same time. Workers do not block: a
// locked key is enqueued again after it is released. The zero value is ready for use.
type Exclusion struct {
	mu      sync.Mutex
	waiters map[Key][]func()
}

// acquire locks the key. If another controller has locked the key, acquire returns false and calls
// enqueue after the key is released.
func (e *Exclusion) acquire(key Key, enqueue func()) bool {
	if e == nil {
		return true
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	waiting, ok := e.waiters[key]
	if ok {
		e.waiters[key] = append(waiting, enqueue)
		return false
	}
	if e.waiters == nil {
		e.waiters = map[Key][]func(){}
	}
	e.waiters[key] = nil
	return true
}

// release unlocks the key and enqueues it for the controllers that have failed to acquire it.
func (e *Exclusion) release(key Key) {
	if e == nil {
		return
	}
	e.mu.Lock()
	waiting := e.waiters[key]
	delete(e.waiters, key)
	e.mu.Unlock()
	for _, enqueue := range waiting {
		enqueue()
	}
}
