package kube

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"sync"
	"time"

	"go.etcd.io/etcd/server/v3/etcdserver"

	"github.com/slipway-platform/slipway/internal/etcdmember"
)

// etcdGateway connects the API server to a voting member: to this host's member or, while that
// member is a learner, to another host's member. A learner does not serve linearizable reads. When
// the learner is promoted to a voter, the gateway closes the connections, and the API server
// reconnects.
type etcdGateway struct {
	// listen is the Unix socket that the API server connects to. member is the Unix socket of this
	// host's member.
	listen, member string
	client         etcdmember.Client
	server         *etcdserver.EtcdServer

	mu          sync.Mutex
	remote      bool // true for connections to other hosts
	connections map[net.Conn]bool
}

// promotionInterval is the interval between checks of whether this host's member has become a
// voter.
const promotionInterval = 500 * time.Millisecond

// run forwards connections until ctx is done. It calls ready when it is listening.
func (g *etcdGateway) run(ctx context.Context, ready func()) error {
	_ = os.Remove(g.listen) // remove the socket of a killed process
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", g.listen)
	if err != nil {
		return fmt.Errorf("listen for the API server: %w", err)
	}
	if err := os.Chmod(g.listen, 0o600); err != nil {
		listener.Close()
		return fmt.Errorf("protect etcd socket: %w", err)
	}
	g.connections, g.remote = map[net.Conn]bool{}, g.server.IsLearner()
	var tasks sync.WaitGroup
	tasks.Go(func() { g.follow(ctx) })
	tasks.Go(func() {
		<-ctx.Done()
		listener.Close()
		g.closeAll()
	})
	ready()
	for {
		conn, err := listener.Accept()
		if err != nil {
			break
		}
		tasks.Go(func() { g.forward(ctx, conn) })
	}
	tasks.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return errors.New("the listener for the API server stopped")
}

// follow closes the connections to other hosts when this host's member becomes a voter.
func (g *etcdGateway) follow(ctx context.Context) {
	ticker := time.NewTicker(promotionInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		g.mu.Lock()
		promoted := g.remote && !g.server.IsLearner()
		g.remote = g.remote && !promoted
		g.mu.Unlock()
		if promoted {
			slog.Info("the etcd member of this host has a vote; the API server uses it")
			g.closeAll()
		}
	}
}

func (g *etcdGateway) closeAll() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for conn := range g.connections {
		conn.Close()
	}
}

// forward copies data between the API server and a member. If it cannot connect to a member, it
// closes the client's connection, and the client retries.
func (g *etcdGateway) forward(ctx context.Context, client net.Conn) {
	defer client.Close()
	if !g.open(ctx, client) {
		return
	}
	defer g.forget(client)
	member, err := g.dial(ctx)
	if err != nil {
		slog.Warn("no etcd member can be reached", "error", err)
		return
	}
	defer member.Close()
	if !g.open(ctx, member) {
		return
	}
	defer g.forget(member)
	var copies sync.WaitGroup
	for _, pair := range [][2]net.Conn{{client, member}, {member, client}} {
		copies.Go(func() {
			_, _ = io.Copy(pair[0], pair[1]) // closing either connection ends both copies
			client.Close()
			member.Close()
		})
	}
	copies.Wait()
}

// open registers a connection. It returns false if the gateway is shutting down.
func (g *etcdGateway) open(ctx context.Context, conn net.Conn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.connections[conn] = true
	return ctx.Err() == nil
}

func (g *etcdGateway) forget(conn net.Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.connections, conn)
}

// dial connects to a voting member.
func (g *etcdGateway) dial(ctx context.Context) (net.Conn, error) {
	dialer := &net.Dialer{Timeout: 3 * time.Second}
	g.mu.Lock()
	remote := g.remote
	g.mu.Unlock()
	if !remote {
		return dialer.DialContext(ctx, "unix", g.member)
	}
	settings, err := g.client.TLS()
	if err != nil {
		return nil, err
	}
	errs := []error{errors.New("no voting member has an address")}
	for _, member := range g.server.Cluster().Members() {
		if member.IsLearner {
			continue
		}
		for _, address := range member.ClientURLs {
			target, err := url.Parse(address)
			if err != nil {
				continue
			}
			conn, err := (&tls.Dialer{NetDialer: dialer, Config: settings}).DialContext(ctx, "tcp", target.Host)
			if err == nil {
				return conn, nil
			}
			errs = append(errs, err)
		}
	}
	return nil, errors.Join(errs...)
}
