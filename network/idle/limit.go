package idle

import (
	"k8s.io/client-go/tools/cache"

	"github.com/slipway-platform/slipway/internal/fairshare"
)

const (
	// maxConnections is the maximum number of connections and datagram senders that are held or
	// forwarded. Further connections are closed, and further datagrams are dropped.
	maxConnections = 1024
	// maxPerService is the maximum number of connections and datagram senders of one service.
	maxPerService = 512
)

// connLimit counts connections and senders. If maxConnections is reached, each project can still
// use an equal share of it, so that no project can prevent other projects' services from waking.
type connLimit struct {
	services fairshare.Shares[cache.ObjectName]
	projects fairshare.Shares[string]
}

func newConnLimit() *connLimit {
	return &connLimit{fairshare.Shares[cache.ObjectName]{PerKey: maxPerService}, fairshare.Shares[string]{Total: maxConnections}}
}

// acquire counts a connection or sender of a service. If a limit is reached, it counts nothing and
// returns false.
func (l *connLimit) acquire(service cache.ObjectName) bool {
	if !l.services.Acquire(service) {
		return false
	}
	if !l.projects.Acquire(service.Namespace) {
		l.services.Release(service)
		return false
	}
	return true
}

// release subtracts a connection or sender that acquire counted.
func (l *connLimit) release(service cache.ObjectName) {
	l.services.Release(service)
	l.projects.Release(service.Namespace)
}
