package idle

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
)

const (
	// maxWait is how long a connection is held for a service that gets no endpoints.
	maxWait = 2 * time.Minute
	// pause is the time between two tries to reach endpoints that do not answer.
	pause = 500 * time.Millisecond
	// dialTimeout bounds one try.
	dialTimeout = 5 * time.Second
)

// holder takes connections and datagrams to idle services.
type holder struct {
	wakes wakes
	seats seats
	flows flows

	mu      sync.Mutex
	targets map[place]target
}

func newHolder(p *Proxy) *holder {
	return &holder{wakes: wakes{proxy: p}, seats: seats{of: map[cache.ObjectName]int{}}, flows: newFlows()}
}

// know replaces the places that packets may have been sent to.
func (h *holder) know(targets map[place]target) {
	h.mu.Lock()
	h.targets = targets
	h.mu.Unlock()
	h.flows.end(func(f *flow) bool {
		of, known := h.find(f.service, corev1.ProtocolUDP)
		return !known || of != f.of
	})
}

// find is the service of an address that a packet was sent to.
func (h *holder) find(address netip.AddrPort, protocol corev1.Protocol) (target, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	found, ok := h.targets[place{address, protocol}]
	if !ok {
		found, ok = h.targets[place{netip.AddrPortFrom(netip.IPv4Unspecified(), address.Port()), protocol}]
	}
	return found, ok
}

// serve accepts until the listener is closed, and returns when the last connection is.
func (h *holder) serve(ctx context.Context, listener net.Listener) {
	var held sync.WaitGroup
	defer held.Wait()
	for {
		accepted, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			slog.Error("cannot accept a connection to an idle service", "err", err)
			select { // such as too many open files
			case <-ctx.Done():
				return
			case <-time.After(pause):
			}
			continue
		}
		held.Go(func() { h.hold(ctx, accepted.(*net.TCPConn)) })
	}
}

// hold keeps a connection until the service that it was made to answers, and passes it on.
func (h *holder) hold(ctx context.Context, client *net.TCPConn) {
	defer client.Close()
	address, err := original(client)
	if err != nil {
		return // it was made to this port
	}
	of, known := h.find(address, corev1.ProtocolTCP)
	if !known || !h.seats.take(of.service) {
		return
	}
	defer h.seats.leave(of.service)
	waiting, stop := context.WithTimeout(ctx, maxWait)
	defer stop()
	server, err := h.reach(waiting, of)
	if err != nil {
		slog.Info("a connection to an idle service was given up", "service", of.service, "err", err)
		return
	}
	defer server.Close()
	end := context.AfterFunc(ctx, func() {
		client.Close()
		server.Close()
	})
	defer end()
	pass(client, server.(*net.TCPConn))
}

// reach connects to an endpoint, and wakes the service where there is none.
func (h *holder) reach(ctx context.Context, of target) (net.Conn, error) {
	dialer := net.Dialer{Timeout: dialTimeout}
	for {
		endpoint, err := h.wakes.endpoint(ctx, of)
		if err != nil {
			return nil, err
		}
		server, err := dialer.DialContext(ctx, "tcp4", endpoint.String())
		if err == nil {
			return server, nil
		}
		select { // an endpoint that is just going or coming
		case <-ctx.Done():
			return nil, err
		case <-time.After(pause):
		}
	}
}

// pass copies both ways until both have ended.
func pass(client, server *net.TCPConn) {
	var ways sync.WaitGroup
	for _, way := range [][2]*net.TCPConn{{client, server}, {server, client}} {
		ways.Go(func() {
			_, err := io.Copy(way[0], way[1])
			if err != nil {
				client.Close()
				server.Close()
				return
			}
			_ = way[0].CloseWrite() // the other way may go on
		})
	}
	ways.Wait()
}

// original is the address that a connection was made to before it was redirected.
func original(client *net.TCPConn) (address netip.AddrPort, err error) {
	raw, err := client.SyscallConn()
	if err != nil {
		return address, err
	}
	var failure error
	err = raw.Control(func(fd uintptr) {
		// A struct sockaddr_in fits into what this option of IPv6 reads: family, port and address.
		socket, err := unix.GetsockoptIPv6Mreq(int(fd), unix.IPPROTO_IP, unix.SO_ORIGINAL_DST)
		if err != nil {
			failure = err
			return
		}
		ip := [4]byte(socket.Multiaddr[4:8])
		address = netip.AddrPortFrom(netip.AddrFrom4(ip), binary.BigEndian.Uint16(socket.Multiaddr[2:4]))
	})
	return address, errors.Join(err, failure)
}
