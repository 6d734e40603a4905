package egressrouter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
)

// proxyTCP listens on each target's port and connects the clients to the target, until ctx is done.
func proxyTCP(ctx context.Context, targets []Target, log *slog.Logger) error {
	var listeners []net.Listener
	closeAll := func() {
		for _, listener := range listeners {
			listener.Close()
		}
	}
	defer closeAll()
	for _, target := range targets {
		listener, err := net.Listen("tcp", fmt.Sprintf(":%d", target.Port))
		if err != nil {
			return fmt.Errorf("serve DNS proxy: %w", err)
		}
		log.InfoContext(ctx, "DNS proxy is ready", "address", listener.Addr(), "target", target.address())
		listeners = append(listeners, listener)
	}
	return serveTCP(ctx, listeners, targets, "tcp"+outside(), log)
}

// serveTCP connects the clients of each listener to the target with the same index. network is the
// network of the connections to the targets, such as tcp4.
func serveTCP(ctx context.Context, listeners []net.Listener, targets []Target, network string, log *slog.Logger) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		for _, listener := range listeners {
			listener.Close()
		}
	})
	defer stop()
	var tasks sync.WaitGroup
	errs := make([]error, len(listeners))
	for i, listener := range listeners {
		tasks.Go(func() {
			defer cancel() // one failure stops all listeners
			errs[i] = forward(ctx, listener, targets[i], network, log)
		})
	}
	tasks.Wait()
	return errors.Join(errs...)
}

// forward connects the clients of one listener to its target.
func forward(ctx context.Context, listener net.Listener, target Target, network string, log *slog.Logger) error {
	var clients sync.WaitGroup
	defer clients.Wait()
	for {
		client, err := listener.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("serve DNS proxy: %w", err)
		}
		clients.Go(func() {
			defer client.Close()
			stop := context.AfterFunc(ctx, func() { client.Close() })
			defer stop()
			log := log.With("client", client.RemoteAddr(), "target", target.address())
			// The dialer resolves the name and tries its addresses.
			server, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, network, target.address())
			if err != nil {
				log.WarnContext(ctx, "cannot connect client to server", "error", err)
				return
			}
			defer server.Close()
			log.InfoContext(ctx, "connected client to server", "address", server.RemoteAddr())
			join(client, server)
			log.InfoContext(ctx, "connection ended", "address", server.RemoteAddr())
		})
	}
}

// join copies data between two connections until both directions have ended, or until one direction
// has failed.
func join(a, b net.Conn) {
	var directions sync.WaitGroup
	copyTo := func(to, from net.Conn) {
		if _, err := io.Copy(to, from); err != nil {
			a.Close()
			b.Close()
			return
		}
		half, ok := to.(interface{ CloseWrite() error })
		if !ok || half.CloseWrite() != nil {
			to.Close()
		}
	}
	directions.Go(func() { copyTo(a, b) })
	directions.Go(func() { copyTo(b, a) })
	directions.Wait()
}
