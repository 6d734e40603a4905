// Package proxy implements the program in the openshift3/oauth-proxy image: a sidecar that lets
// only users of the cluster reach the application in its pod. The pod's service account is its
// OAuth client.
//
//	browser             proxy                        OAuth server
//	   |  any page        |                               |
//	   |----------------->|  no session                   |
//	   |<-----------------|  302, cookie with the state   |
//	   |  /oauth/authorize                                |
//	   |------------------------------------------------->|
//	   |  /oauth/callback |                               |
//	   |----------------->|  code for a token, user       |
//	   |<-----------------|  302, cookie with the session |
//
// Source: OpenShift Container Platform 3.9 Architecture, section 4.1.4.3.1.1. The flags, paths and
// headers are the same as in github.com/openshift/oauth-proxy.
package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/slipway-platform/slipway/internal/keypair"
)

// Main runs the proxy until it receives a signal. It exits with status 1 if a setting is invalid.
func Main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	settings, err := Parse(os.Args[1:], os.Stderr)
	if err == nil {
		err = Run(ctx, settings)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		os.Exit(1)
	}
}

const (
	// headerTimeout is the timeout for reading a request header.
	headerTimeout = 30 * time.Second
	// idleTimeout is the maximum time that a connection stays idle between requests.
	idleTimeout = 2 * time.Minute
	// shutdownTimeout is the time that in-flight requests have to complete after a signal.
	shutdownTimeout = 10 * time.Second
)

// Run serves until ctx is done.
func Run(ctx context.Context, s Settings) error {
	api, err := connect(s)
	if err != nil {
		return err
	}
	handler, err := newHandler(s, api)
	if err != nil {
		return err
	}
	listener, err := s.listen()
	if err != nil {
		return err
	}
	slog.Info("serve", "address", listener.Addr().String(), "upstreams", s.Upstreams)
	server := &http.Server{Handler: handler, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err := <-served:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	err = server.Shutdown(last)
	if served := <-served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

// listen opens the port. It uses TLS if the settings contain an HTTPS address.
func (s Settings) listen() (net.Listener, error) {
	address := s.HTTPS
	if address == "" {
		address = s.HTTP
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	if s.HTTPS == "" {
		return listener, nil
	}
	load := keypair.Loader(s.Certificate, s.Key)
	if _, err := load(nil); err != nil {
		listener.Close()
		return nil, err
	}
	return tls.NewListener(listener, &tls.Config{GetCertificate: load, NextProtos: []string{"h2", "http/1.1"}}), nil
}
