package egressip

import (
	"context"
	"errors"
	"maps"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"
)

const (
	// pollInterval is the time between two requests to a host, and the timeout of a request.
	pollInterval = time.Second
	// maxFailures is the number of consecutive failed requests after which a host is considered
	// lost.
	maxFailures = 3
	// discard is a TCP port on which no host listens. OpenShift 3.11 uses the same port. A host
	// that refuses the connection is alive.
	discard = "9"
)

// Monitor determines which hosts respond. Its methods can be called concurrently.
type Monitor struct {
	// Changed is called when a host is lost or responds again.
	Changed func()

	mu       sync.Mutex
	hosts    map[string]netip.Addr
	failures map[string]int
}

// Watch sets the hosts to poll. hosts maps host names to addresses in the pod network.
func (m *Monitor) Watch(hosts map[string]netip.Addr) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.hosts = maps.Clone(hosts)
}

// Alive reports whether a host responds. A host that is not polled is considered alive.
func (m *Monitor) Alive(host string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, polled := m.hosts[host]
	return !polled || m.failures[host] < maxFailures
}

// Run polls the hosts until ctx is done.
func (m *Monitor) Run(ctx context.Context) {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		m.mu.Lock()
		hosts := maps.Clone(m.hosts)
		m.mu.Unlock()
		if m.record(poll(ctx, hosts)) && ctx.Err() == nil {
			m.Changed()
		}
	}
}

// poll reports which hosts respond.
func poll(ctx context.Context, hosts map[string]netip.Addr) map[string]bool {
	var tasks sync.WaitGroup
	var mu sync.Mutex
	results := map[string]bool{}
	for name, address := range hosts {
		tasks.Go(func() {
			dialer := net.Dialer{Timeout: pollInterval}
			conn, err := dialer.DialContext(ctx, "tcp4", net.JoinHostPort(address.String(), discard))
			if err == nil {
				_ = conn.Close()
			}
			mu.Lock()
			defer mu.Unlock()
			results[name] = err == nil || errors.Is(err, syscall.ECONNREFUSED)
		})
	}
	tasks.Wait()
	return results
}

// record counts failures. It reports whether any host was lost or responds again.
func (m *Monitor) record(results map[string]bool) (changed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	failures := map[string]int{}
	for name, responds := range results {
		before := m.failures[name]
		if !responds {
			failures[name] = min(before+1, maxFailures)
		}
		changed = changed || before >= maxFailures != (failures[name] >= maxFailures)
	}
	m.failures = failures
	return changed
}
