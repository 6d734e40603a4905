// Package fairshare limits how much of a resource each key, such as a client or a project, uses at
// the same time.
package fairshare

import "sync"

// Shares counts what is in use. It is safe for concurrent use after its limits have been set.
type Shares[K comparable] struct {
	// PerKey is the maximum for one key. 0 means no maximum.
	PerKey int
	// Total is the number in use from which on a key can only use an equal share of Total, so that no
	// key can prevent others from using theirs. The number in use can therefore double. 0 means that
	// only PerKey applies.
	Total int

	mu    sync.Mutex
	used  map[K]int
	total int
}

// Acquire counts one more for a key. If a limit is reached, it counts nothing and returns false.
func (s *Shares[K]) Acquire(key K) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	own, keys := s.used[key], len(s.used)
	if own == 0 {
		keys++
	}
	if s.PerKey > 0 && own >= s.PerKey || s.Total > 0 && s.total >= s.Total && own >= s.Total/keys {
		return false
	}
	if s.used == nil {
		s.used = map[K]int{}
	}
	s.used[key]++
	s.total++
	return true
}

// Release subtracts what Acquire counted.
func (s *Shares[K]) Release(key K) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total--
	if s.used[key]--; s.used[key] == 0 {
		delete(s.used, key)
	}
}

// InUse returns the number of keys in memory, and the number in use by all of them.
func (s *Shares[K]) InUse() (keys, total int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.used), s.total
}
