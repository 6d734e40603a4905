// Package balancer forwards connections from a node's components to an API server that is serving.
//
// A node's kubeconfigs contain a local address. The balancer listens on that address, checks each
// API server every second, and forwards each connection to the first server that is serving. When
// an API server stops serving, the balancer closes its connections, so that the clients connect to
// another server. The list of API servers comes from the `kubernetes` service. It is stored in a
// file for the next start.
package balancer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

const (
	// checkInterval is the interval between checks of an API server.
	checkInterval = time.Second
	// checkTimeout is the timeout for a check, and for connecting to an API server.
	checkTimeout = 3 * time.Second
)

// Balancer is the component that forwards connections to API servers.
type Balancer struct {
	// Address is the host:port on which the balancer listens.
	Address string
	// Servers contains the initial host:port addresses of the API servers.
	Servers []string
	// Public, if set, is the masters' public host:port address. It is used while none of
	// the listed API servers responds, for example because the masters were restored on other
	// machines.
	Public string
	// Preferred, if set, is the API server on the same host. It receives all connections while it
	// is serving.
	Preferred string
	// HTTP sends the checks. It trusts the cluster's CA.
	HTTP *http.Client
	// Watch calls changed with each new list of API servers until ctx is done.
	Watch func(ctx context.Context, changed func([]string))
	// Serves, if set, receives a value when an API server starts serving. Values that have not been
	// received yet are combined into one value.
	Serves chan<- struct{}
	// Save stores a new list of API servers for the next start.
	Save func([]string) error

	mu       sync.Mutex
	backends []*backend
	listed   []string // the last list of API servers

	applying sync.Mutex // serializes changes
}

// backend is an API server.
type backend struct {
	address     string
	serves      bool
	connections map[net.Conn]bool
}

// Name returns the component's name.
func (b *Balancer) Name() string { return "balancer" }

// Run forwards connections until ctx is done. It calls ready once it is listening.
func (b *Balancer) Run(ctx context.Context, ready func()) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", b.Address)
	if err != nil {
		return fmt.Errorf("listen for node components: %w", err)
	}
	b.listed = b.Servers
	b.set(b.Servers)
	b.check(ctx)
	var tasks sync.WaitGroup
	tasks.Go(func() { b.checkAll(ctx) })
	if b.Watch != nil {
		tasks.Go(func() { b.Watch(ctx, b.update) })
	}
	tasks.Go(func() {
		<-ctx.Done()
		listener.Close()
		b.set(nil)
	})
	ready()
	for {
		conn, err := listener.Accept()
		if err != nil {
			break
		}
		tasks.Go(func() { b.forward(ctx, conn) })
	}
	tasks.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return errors.New("the listener for the node's components stopped unexpectedly")
}

// update replaces the list of API servers. It ignores an empty list, because an empty list is never
// correct.
func (b *Balancer) update(servers []string) {
	if len(servers) == 0 {
		return
	}
	b.mu.Lock()
	b.listed = servers
	b.mu.Unlock()
	b.apply()
}

// apply applies the list of API servers. While no server in the list is serving, apply keeps the
// previous servers. This is necessary because, for a few seconds after a failure, the list can
// contain only masters that have failed.
func (b *Balancer) apply() {
	b.applying.Lock()
	defer b.applying.Unlock()
	current := b.servers()
	servers := b.usable(current)
	if len(servers) == 0 || slices.Equal(servers, current) {
		return
	}
	slog.Info("the list of API servers has changed", "addresses", servers)
	b.set(servers)
	if b.Save == nil {
		return
	}
	if err := b.Save(servers); err != nil {
		slog.Warn("cannot store the list of API servers", "error", err)
	}
}

// usable returns the list of API servers. If no server in the list is serving, it appends the
// servers in use that are missing from the list, and the public address.
func (b *Balancer) usable(current []string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, backend := range b.backends {
		if backend.serves && slices.Contains(b.listed, backend.address) {
			return b.listed
		}
	}
	servers := slices.Clone(b.listed)
	if b.Public != "" {
		current = append(current, b.Public)
	}
	for _, address := range current {
		if !slices.Contains(servers, address) {
			servers = append(servers, address)
		}
	}
	return servers
}

func (b *Balancer) servers() (addresses []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, backend := range b.backends {
		addresses = append(addresses, backend.address)
	}
	return addresses
}

// set keeps the backends that are in servers, adds missing backends, and closes the connections of
// all other backends.
func (b *Balancer) set(servers []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var next []*backend
	for _, address := range servers {
		i := slices.IndexFunc(b.backends, func(existing *backend) bool { return existing.address == address })
		if i < 0 {
			next = append(next, &backend{address: address, connections: map[net.Conn]bool{}})
			continue
		}
		next = append(next, b.backends[i])
	}
	for _, existing := range b.backends {
		if !slices.Contains(next, existing) {
			existing.close()
		}
	}
	b.backends = next
}

func (s *backend) close() {
	for conn := range s.connections {
		conn.Close()
	}
}

func (b *Balancer) checkAll(ctx context.Context) {
	ticker := time.NewTicker(checkInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			b.check(ctx)
			b.apply()
		}
	}
}

// check checks all API servers concurrently.
func (b *Balancer) check(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	var checks sync.WaitGroup
	for _, address := range b.servers() {
		checks.Go(func() { b.record(address, b.probe(ctx, address)) })
	}
	checks.Wait()
}

func (b *Balancer) probe(ctx context.Context, address string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+"/readyz", nil)
	if err != nil {
		return false
	}
	response, err := b.HTTP.Do(request)
	if err != nil {
		return false
	}
	_, _ = io.Copy(io.Discard, response.Body) // read the body, so that the connection can be reused
	return response.Body.Close() == nil && response.StatusCode == http.StatusOK
}

// record stores the result of a check. If there is only one API server, its connections stay open.
// Closing them would not help, and requests that the server is still processing would fail.
func (b *Balancer) record(address string, serves bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, backend := range b.backends {
		if backend.address != address || backend.serves == serves {
			continue
		}
		backend.serves = serves
		slog.Info("an API server has become available or unavailable", "address", address, "serves", serves)
		if !serves && len(b.backends) > 1 {
			backend.close()
		}
		if serves {
			select {
			case b.Serves <- struct{}{}:
			default:
			}
		}
	}
}

// order returns the API servers in the order in which they are tried. Servers that are serving come
// first, and among these, the preferred server comes first.
func (b *Balancer) order() []*backend {
	b.mu.Lock()
	defer b.mu.Unlock()
	rank := func(s *backend) int {
		switch {
		case s.serves && s.address == b.Preferred:
			return 0
		case s.serves:
			return 1
		}
		return 2
	}
	return slices.SortedStableFunc(slices.Values(b.backends), func(x, y *backend) int { return rank(x) - rank(y) })
}

// forward copies data between a client and the first API server that accepts a connection.
func (b *Balancer) forward(ctx context.Context, client net.Conn) {
	defer client.Close()
	for _, backend := range b.order() {
		server, err := (&net.Dialer{Timeout: checkTimeout}).DialContext(ctx, "tcp", backend.address)
		if err != nil {
			continue
		}
		defer server.Close()
		if !b.open(backend, client, server) {
			return
		}
		defer b.forget(backend, client, server)
		var copies sync.WaitGroup
		for _, pair := range [][2]net.Conn{{client, server}, {server, client}} {
			copies.Go(func() {
				_, _ = io.Copy(pair[0], pair[1]) // when one direction ends, close both connections
				client.Close()
				server.Close()
			})
		}
		copies.Wait()
		return
	}
}

// open registers a backend's connections. It returns false if the backend has been removed.
func (b *Balancer) open(s *backend, connections ...net.Conn) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !slices.Contains(b.backends, s) {
		return false
	}
	for _, conn := range connections {
		s.connections[conn] = true
	}
	return true
}

func (b *Balancer) forget(s *backend, connections ...net.Conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, conn := range connections {
		delete(s.connections, conn)
	}
}
