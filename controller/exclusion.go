package controller

import "sync"

// Exclusion prevents several controllers from reconciling the same key at once, such as attach and
// detach of a volume. Workers do not wait: a locked key is enqueued again after its release. The
// zero value is ready for use.
type Exclusion struct {
	mu   sync.Mutex
	held map[Key][]func()
}

// acquire locks the key. If another controller has locked it, acquire returns false and enqueue is
// called after the release.
func (e *Exclusion) acquire(key Key, enqueue func()) bool {
	if e == nil {
		return true
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	waiting, ok := e.held[key]
	if ok {
		e.held[key] = append(waiting, enqueue)
		return false
	}
	if e.held == nil {
		e.held = map[Key][]func(){}
	}
	e.held[key] = nil
	return true
}

// release unlocks the key.
func (e *Exclusion) release(key Key) {
	if e == nil {
		return
	}
	e.mu.Lock()
	waiting := e.held[key]
	delete(e.held, key)
	e.mu.Unlock()
	for _, enqueue := range waiting {
		enqueue()
	}
}
