package idle

import (
	"sync"

	"k8s.io/client-go/tools/cache"
)

const (
	// maxConnections is the maximum number of connections and datagram senders that are held or
	// forwarded. Further connections are closed, and further datagrams are dropped.
	maxConnections = 1024
	// maxPerService is the maximum number of connections and datagram senders of one service.
	maxPerService = 512
)

// connLimit counts connections and senders.
type connLimit struct {
	mu        sync.Mutex
	byService map[cache.ObjectName]int
	total     int
}

// acquire counts a connection or sender of a service. If a limit is reached, it counts nothing and
// returns false.
func (s *connLimit) acquire(service cache.ObjectName) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.total >= maxConnections || s.byService[service] >= maxPerService {
		return false
	}
	s.total++
	s.byService[service]++
	return true
}

// release subtracts a connection or sender that acquire counted.
func (s *connLimit) release(service cache.ObjectName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total--
	s.byService[service]--
	if s.byService[service] == 0 {
		delete(s.byService, service)
	}
}
