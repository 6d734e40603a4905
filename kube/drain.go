package kube

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/server/egressselector"
)

const (
	// drainQuietPeriod is how long no byte passes on a closed connection until it ends.
	drainQuietPeriod = 5 * time.Second
	// drainTimeout ends a closed connection that is never quiet. It is shorter than the time that
	// the former certificate stays valid, a third of at least an hour.
	drainTimeout = 10 * time.Minute
	// restartTimeout is how long a request waits for a kubelet that restarts: nothing listens until
	// its process is back, within seconds. restartInterval is the time between attempts.
	restartTimeout, restartInterval = 30 * time.Second, 100 * time.Millisecond
)

// drainer dials connections to kubelets. client-go closes all of them when the certificate of the
// API server's client is renewed, which would fail the requests on them ("use of closed network
// connection"). A connection of a drainer therefore works on until it is quiet.
type drainer struct {
	dialer net.Dialer
	quiet  time.Duration
	limit  time.Duration
	// restart is how long a dial waits while nothing listens.
	restart time.Duration
}

func newDrainer() *drainer {
	return &drainer{dialer: net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}, quiet: drainQuietPeriod, limit: drainTimeout, restart: restartTimeout}
}

// lookup is the egress lookup of connections to kubelets.
func (d *drainer) lookup(egressselector.NetworkContext) (utilnet.DialFunc, error) { return d.dial, nil }

func (d *drainer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	start := time.Now()
	conn, err := d.dialer.DialContext(ctx, network, address)
	for errors.Is(err, syscall.ECONNREFUSED) && time.Since(start) < d.restart {
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(restartInterval):
		}
		conn, err = d.dialer.DialContext(ctx, network, address)
	}
	if err != nil {
		return nil, err
	}
	return &drainedConn{Conn: conn, drainer: d}, nil
}

// drainedConn is a connection that ends after Close when it is quiet, or when its peer closes it.
type drainedConn struct {
	net.Conn
	drainer *drainer
	passed  atomic.Int64 // bytes
	once    sync.Once
}

// Read reads, also after Close until the connection ends.
func (c *drainedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.passed.Add(int64(n))
	return n, err
}

// Write writes, also after Close until the connection ends.
func (c *drainedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.passed.Add(int64(n))
	return n, err
}

// Close ends the connection when it is quiet. It does not wait for that.
func (c *drainedConn) Close() error {
	c.once.Do(func() { c.endWhenQuiet(c.passed.Load(), time.Now().Add(c.drainer.limit)) })
	return nil
}

// endWhenQuiet closes the connection if no byte passes within the quiet period. Otherwise, it waits
// for the next quiet period, until the deadline.
func (c *drainedConn) endWhenQuiet(passed int64, deadline time.Time) {
	time.AfterFunc(c.drainer.quiet, func() {
		if now := c.passed.Load(); now != passed && time.Now().Before(deadline) {
			c.endWhenQuiet(now, deadline)
			return
		}
		_ = c.Conn.Close() // its peer may have closed it
	})
}
