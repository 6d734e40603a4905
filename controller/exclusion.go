package controller

import "sync"

// Exclusion keeps the loops that share it from working on one key at the same time, such as attaching and detaching the same volume. No
// worker waits: the key comes back to its queue when it is free. The zero value is ready.
type Exclusion struct {
	mu   sync.Mutex
	held map[Key][]func()
}

// acquire takes the key. When another loop has it, later is called once it is free.
func (e *Exclusion) acquire(key Key, later func()) bool {
	if e == nil {
		return true
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	waiting, taken := e.held[key]
	if taken {
		e.held[key] = append(waiting, later)
		return false
	}
	if e.held == nil {
		e.held = map[Key][]func(){}
	}
	e.held[key] = nil
	return true
}

// release gives the key back.
func (e *Exclusion) release(key Key) {
	if e == nil {
		return
	}
	e.mu.Lock()
	waiting := e.held[key]
	delete(e.held, key)
	e.mu.Unlock()
	for _, later := range waiting {
		later()
	}
}
