package kube

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/server/egressselector"
)

const (
	// drainQuietPeriod is how long a closed connection must be idle before it is terminated.
	drainQuietPeriod = 5 * time.Second
	// drainTimeout is how long a connection can stay open after Close if it is never idle. It is
	// shorter than the remaining validity of the previous certificate: a third of the certificate's
	// lifetime, which is at least an hour.
	drainTimeout = 10 * time.Minute
	// restartTimeout is how long a request waits for a restarting kubelet. No process listens until
	// the kubelet's process is running again, which takes seconds. restartInterval is the time
	// between attempts.
	restartTimeout, restartInterval = 30 * time.Second, 100 * time.Millisecond
	// renewalTimeout is the duration of a kubelet's lease. A kubelet whose lease has expired is
	// considered down, not restarting.
	renewalTimeout = 40 * time.Second
	// responseTimeout is how long the kubelet can take to send its first byte, which is part of the
	// TLS handshake.
	responseTimeout = 15 * time.Second
)

// drainer dials connections to kubelets. client-go closes all connections when the API server's
// client certificate is renewed, so in-flight requests would fail ("use of closed network
// connection"). A drainer's connections therefore continue to work after Close until they are idle.
type drainer struct {
	dialer net.Dialer
	quiet  time.Duration
	limit  time.Duration
	// restart is how long a dial waits while no process is listening. response is how long a
	// connection waits for its first byte.
	restart, response time.Duration
	// lastRenewal returns when the kubelet at a host last renewed its lease, or the zero time if
	// this is unknown. It can be nil.
	lastRenewal func(ctx context.Context, host string) time.Time
}

func newDrainer() *drainer {
	return &drainer{
		dialer: net.Dialer{Timeout: responseTimeout, KeepAlive: 30 * time.Second},
		quiet:  drainQuietPeriod, limit: drainTimeout, restart: restartTimeout, response: responseTimeout,
	}
}

// lookup is the egress lookup for connections to kubelets.
func (d *drainer) lookup(egressselector.NetworkContext) (utilnet.DialFunc, error) { return d.dial, nil }

func (d *drainer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := d.dialer.DialContext(ctx, network, address)
	if errors.Is(err, syscall.ECONNREFUSED) {
		conn, err = d.redial(ctx, network, address, err)
	}
	if err != nil {
		return nil, fmt.Errorf("connect to kubelet: %w; on its host, run: slipway status", err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(d.response)); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return &drainedConn{Conn: conn, drainer: d}, nil
}

// redial retries a refused dial until the kubelet is listening, if the kubelet might be restarting.
func (d *drainer) redial(ctx context.Context, network, address string, refused error) (net.Conn, error) {
	deadline := time.Now().Add(d.restart)
	if host, _, err := net.SplitHostPort(address); err == nil && d.lastRenewal != nil {
		if renewal := d.lastRenewal(ctx, host); !renewal.IsZero() && renewal.Add(renewalTimeout).Before(deadline) {
			deadline = renewal.Add(renewalTimeout)
		}
	}
	for time.Now().Before(deadline) {
		select {
		case <-ctx.Done():
			return nil, refused
		case <-time.After(restartInterval):
		}
		conn, err := d.dialer.DialContext(ctx, network, address)
		if !errors.Is(err, syscall.ECONNREFUSED) {
			return conn, err
		}
	}
	return nil, refused
}

// drainedConn is a connection that stays open after Close until it is idle or its peer closes it.
type drainedConn struct {
	net.Conn
	drainer *drainer
	passed  atomic.Int64 // number of transferred bytes
	// responds is set once the kubelet has sent a byte. Until then, reads have a deadline.
	responds atomic.Bool
	once     sync.Once
}

// Read reads from the connection. It also works after Close, until the connection is terminated.
func (c *drainedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 && !c.responds.Swap(true) {
		err = errors.Join(err, c.Conn.SetReadDeadline(time.Time{}))
	}
	if errors.Is(err, os.ErrDeadlineExceeded) && !c.responds.Load() {
		err = fmt.Errorf("the kubelet at %s does not respond within %s; on its host, run: slipway status", c.RemoteAddr(), c.drainer.response)
	}
	c.passed.Add(int64(n))
	return n, err
}

// Write writes to the connection. It also works after Close, until the connection is terminated.
func (c *drainedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.passed.Add(int64(n))
	return n, err
}

// Close terminates the connection once it is idle. Close returns immediately.
func (c *drainedConn) Close() error {
	c.once.Do(func() { c.endWhenQuiet(c.passed.Load(), time.Now().Add(c.drainer.limit)) })
	return nil
}

// endWhenQuiet closes the connection if no byte is transferred within the quiet period. Otherwise,
// it waits for the next quiet period, until the deadline.
func (c *drainedConn) endWhenQuiet(passed int64, deadline time.Time) {
	time.AfterFunc(c.drainer.quiet, func() {
		if now := c.passed.Load(); now != passed && time.Now().Before(deadline) {
			c.endWhenQuiet(now, deadline)
			return
		}
		_ = c.Conn.Close() // the peer might have closed the connection
	})
}
