package router

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/slipway-platform/slipway/internal/keypair"
	"github.com/slipway-platform/slipway/internal/serverlimit"
	"github.com/slipway-platform/slipway/router/environment"
)

const (
	// firstByteTimeout is the maximum time that a client can take to send its first byte.
	firstByteTimeout = 10 * time.Second
	// acceptDelay is the delay after an accept error.
	acceptDelay = time.Second
)

// serveAll serves requests on a listener until ctx is done. If ROUTER_METRICS_TLS_CERT_FILE is set,
// it serves TLS. Over connections without TLS, it then serves only health checks, so that passwords
// and tokens are never sent in plain text.
func serveAll(ctx context.Context, s environment.Settings, listener net.Listener,
	handler http.Handler) error {
	certificate, key := s.Text("ROUTER_METRICS_TLS_CERT_FILE"), s.Text("ROUTER_METRICS_TLS_KEY_FILE")
	server := func(handler http.Handler) *http.Server {
		return &http.Server{
			Handler: handler, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, WriteTimeout: 2 * time.Minute, IdleTimeout: time.Minute,
			MaxHeaderBytes: serverlimit.MaxHeaderBytes, HTTP2: serverlimit.HTTP2(serverlimit.RequestBuffer),
		}
	}
	open := server(handler)
	defer context.AfterFunc(ctx, func() { _ = open.Close() })()
	if certificate == "" {
		return serveErr(open.Serve(listener))
	}
	load := keypair.Loader(certificate, key)
	if _, err := load(nil); err != nil {
		return fmt.Errorf("read ROUTER_METRICS_TLS_CERT_FILE: %w", err)
	}
	secured := server(handler)
	secured.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: load}
	open.Handler = healthOnly(handler)
	defer context.AfterFunc(ctx, func() { _ = secured.Close() })()
	halves := newSplit(listener)
	defer halves.Close()
	failures := make(chan error, 3)
	var group sync.WaitGroup
	for _, run := range []func() error{
		func() error { return open.Serve(halves.plain) }, func() error { return secured.ServeTLS(halves.tls, "", "") }, func() error { return halves.run(ctx) },
	} {
		group.Go(func() { failures <- run() })
	}
	err := <-failures
	_, _, _ = open.Close(), secured.Close(), halves.Close()
	group.Wait()
	return serveErr(err)
}

func serveErr(err error) error {
	if err == nil || errors.Is(err, http.ErrServerClosed) || errors.Is(err, net.ErrClosed) {
		return nil
	}
	return fmt.Errorf("serve statistics: %w", err)
}

// healthOnly serves only health checks and rejects all other requests, because they require a
// password.
func healthOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" && r.URL.Path != "/healthz/ready" {
			http.Error(w, "use https", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// split distributes a listener's connections to two other listeners: one for TLS and one for plain
// connections.
type split struct {
	net.Listener
	tls, plain *half
	done       chan struct{}
	once       sync.Once
}

// half is one of the two listeners of a split.
type half struct {
	*split
	connections chan net.Conn
}

func newSplit(listener net.Listener) *split {
	s := &split{Listener: listener, done: make(chan struct{})}
	s.tls, s.plain = &half{s, make(chan net.Conn)}, &half{s, make(chan net.Conn)}
	return s
}

// Accept waits for a connection for this half.
func (h *half) Accept() (net.Conn, error) {
	select {
	case connection := <-h.connections:
		return connection, nil
	case <-h.done:
		return nil, net.ErrClosed
	}
}

// Close closes the listener and both halves.
func (s *split) Close() error {
	s.once.Do(func() { close(s.done) })
	return s.Listener.Close()
}

// run accepts connections until the listener is closed.
func (s *split) run(ctx context.Context) error {
	var group sync.WaitGroup
	defer group.Wait()
	for {
		connection, err := s.Listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return err
		}
		if err != nil { // for example, if too many files are open
			slog.Error("cannot accept connection for statistics", "error", err)
			select {
			case <-s.done:
				return net.ErrClosed
			case <-time.After(acceptDelay):
			}
			continue
		}
		group.Go(func() { s.hand(ctx, connection) })
	}
}

// startedConn is a connection whose first byte has already been read.
type startedConn struct {
	net.Conn
	reader *bufio.Reader
}

// Read returns data starting with the first byte.
func (b *startedConn) Read(into []byte) (int, error) { return b.reader.Read(into) }

// hand passes a connection to one of the two listeners, according to its first byte.
func (s *split) hand(ctx context.Context, connection net.Conn) {
	stop := context.AfterFunc(ctx, func() { _ = connection.Close() })
	_ = connection.SetReadDeadline(time.Now().Add(firstByteTimeout)) // it supports deadlines
	started := &startedConn{connection, bufio.NewReader(connection)}
	first, err := started.reader.Peek(1)
	if !stop() || err != nil {
		_ = connection.Close()
		return
	}
	_ = connection.SetReadDeadline(time.Time{})
	to := s.plain
	if first[0] == tlsHandshake {
		to = s.tls
	}
	select {
	case to.connections <- started:
	case <-s.done:
		_ = connection.Close()
	}
}

// tlsHandshake is the content type of the first TLS record.
const tlsHandshake = 22
