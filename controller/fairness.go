package controller

import "sync"

// turns defines the order of a queue: namespaces take turns, and the keys in a namespace are
// processed in the order in which they were added. Therefore, many keys in one namespace do not
// delay the keys in other namespaces. turns implements workqueue.Queue, whose methods are called
// with the queue's lock held.
type turns struct {
	waiting map[string][]Key
	// order contains each namespace with waiting keys once. The next namespace is first.
	order []string
	count int
}

// Touch is a no-op, because a key that is added again keeps its place in the queue.
func (*turns) Touch(Key) {}

// Len returns the number of waiting keys.
func (t *turns) Len() int { return t.count }

// Push adds a key that is not waiting.
func (t *turns) Push(key Key) {
	if t.waiting == nil {
		t.waiting = map[string][]Key{}
	}
	if len(t.waiting[key.Namespace]) == 0 {
		t.order = append(t.order, key.Namespace)
	}
	t.waiting[key.Namespace] = append(t.waiting[key.Namespace], key)
	t.count++
}

// Pop removes and returns the first key in the namespace whose turn it is. The queue must not be
// empty.
func (t *turns) Pop() Key {
	namespace := t.order[0]
	t.order = t.order[1:]
	keys := t.waiting[namespace]
	if t.count--; len(keys) == 1 {
		delete(t.waiting, namespace)
		return keys[0]
	}
	t.waiting[namespace] = keys[1:]
	t.order = append(t.order, namespace)
	return keys[0]
}

// share limits how many keys in one namespace are reconciled at the same time. Workers do not
// block: a key that exceeds the limit is enqueued again when another key in its namespace is done.
type share struct {
	// limit is the maximum number of keys per namespace. 0 means no limit.
	limit int

	mu      sync.Mutex
	busy    map[string]int
	waiting map[string][]Key
	parked  map[Key]bool // the keys that waiting contains
}

// acquire reports whether a key can be reconciled now. Keys without a namespace are not limited.
func (s *share) acquire(key Key) bool {
	if s.limit == 0 || key.Namespace == "" {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy == nil {
		s.busy, s.waiting, s.parked = map[string]int{}, map[string][]Key{}, map[Key]bool{}
	}
	if s.busy[key.Namespace] == s.limit {
		if !s.parked[key] {
			s.parked[key] = true
			s.waiting[key.Namespace] = append(s.waiting[key.Namespace], key)
		}
		return false
	}
	s.busy[key.Namespace]++
	return true
}

// release marks a key as done and enqueues the next waiting key.
func (s *share) release(key Key, enqueue func(Key)) {
	if s.limit == 0 || key.Namespace == "" {
		return
	}
	s.mu.Lock()
	if s.busy[key.Namespace]--; s.busy[key.Namespace] == 0 {
		delete(s.busy, key.Namespace)
	}
	waiting := s.waiting[key.Namespace]
	if len(waiting) == 0 {
		s.mu.Unlock()
		return
	}
	next := waiting[0]
	delete(s.parked, next)
	if s.waiting[key.Namespace] = waiting[1:]; len(waiting) == 1 {
		delete(s.waiting, key.Namespace)
	}
	s.mu.Unlock()
	enqueue(next)
}
