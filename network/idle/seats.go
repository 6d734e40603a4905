package idle

import (
	"sync"

	"k8s.io/client-go/tools/cache"
)

const (
	// maxHeld is how many connections and senders of datagrams are held or passed on at once; further ones are closed and dropped.
	maxHeld = 1024
	// maxOfService is how many of them one service has.
	maxOfService = 512
)

// seats counts what is held.
type seats struct {
	mu  sync.Mutex
	of  map[cache.ObjectName]int
	all int
}

// take says whether there is room for one more of a service, and counts it.
func (s *seats) take(service cache.ObjectName) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all >= maxHeld || s.of[service] >= maxOfService {
		return false
	}
	s.all++
	s.of[service]++
	return true
}

// leave counts one less.
func (s *seats) leave(service cache.ObjectName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all--
	s.of[service]--
	if s.of[service] == 0 {
		delete(s.of, service)
	}
}
