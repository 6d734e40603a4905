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
	byProject map[string]int
	total     int
}

func newConnLimit() connLimit {
	return connLimit{byService: map[cache.ObjectName]int{}, byProject: map[string]int{}}
}

// acquire counts a connection or sender of a service. If a limit is reached, it counts nothing and
// returns false. If maxConnections is reached, each project can still use an equal share of it, so
// that one project cannot prevent other projects' services from waking.
func (s *connLimit) acquire(service cache.ObjectName) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	own, projects := s.byProject[service.Namespace], len(s.byProject)
	if own == 0 {
		projects++
	}
	if s.byService[service] >= maxPerService || s.total >= maxConnections && own >= maxConnections/projects {
		return false
	}
	s.total++
	s.byService[service]++
	s.byProject[service.Namespace]++
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
	s.byProject[service.Namespace]--
	if s.byProject[service.Namespace] == 0 {
		delete(s.byProject, service.Namespace)
	}
}
