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

	"github.com/slipway-platform/slipway/network/ipfamily"
)

const (
	// holdTimeout is the maximum time for which a connection is held while its service has no
	// endpoints.
	holdTimeout = 2 * time.Minute
	// retryDelay is the delay between two attempts to connect to endpoints.
	retryDelay = 500 * time.Millisecond
	// dialTimeout is the maximum duration of one attempt.
	dialTimeout = 5 * time.Second
)

// holder accepts connections and datagrams to idle services.
type holder struct {
	waker *waker
	limit *connLimit
	flows flows

	mu      sync.Mutex
	targets map[destination]target
}

func newHolder(p *Proxy) *holder {
	return &holder{waker: newWaker(p), limit: newConnLimit(), flows: newFlows()}
}

// setTargets replaces the service ports, keyed by destination. It cancels the flows whose service
// port has changed.
func (h *holder) setTargets(targets map[destination]target) {
	h.mu.Lock()
	h.targets = targets
	h.mu.Unlock()
	h.flows.cancel(func(f *datagramFlow) bool {
		tgt, ok := h.find(f.service, corev1.ProtocolUDP)
		return !ok || tgt != f.target
	})
}

// find returns the service port that a destination address belongs to.
func (h *holder) find(address netip.AddrPort, protocol corev1.Protocol) (target, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	tgt, ok := h.targets[destination{address, protocol}]
	if !ok {
		tgt, ok = h.targets[destination{netip.AddrPortFrom(ipfamily.Of(address.Addr()).Unspecified(), address.Port()), protocol}]
	}
	return tgt, ok
}

// serve accepts connections until the listener is closed, and returns when the last connection is
// closed.
func (h *holder) serve(ctx context.Context, listener net.Listener) {
	var tasks sync.WaitGroup
	defer tasks.Wait()
	for {
		conn, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			slog.Error("cannot accept connection to idle service", "error", err)
			select { // wait, because the cause can be temporary, such as too many open files
			case <-ctx.Done():
				return
			case <-time.After(retryDelay):
			}
			continue
		}
		tasks.Go(func() { h.hold(ctx, conn.(*net.TCPConn)) })
	}
}

// hold keeps a client's connection open until the service has an endpoint that accepts the
// connection. It then forwards the connection.
func (h *holder) hold(ctx context.Context, client *net.TCPConn) {
	defer client.Close()
	address, err := originalDestination(client)
	if err != nil {
		return // the client connected directly to this port
	}
	tgt, ok := h.find(address, corev1.ProtocolTCP)
	if !ok || !h.limit.acquire(tgt.service) {
		return
	}
	defer h.limit.release(tgt.service)
	holdCtx, stop := context.WithTimeout(ctx, holdTimeout)
	defer stop()
	source, err := netip.ParseAddrPort(client.RemoteAddr().String())
	if err != nil {
		return // unreachable, because TCP connections have IP addresses
	}
	server, err := h.reach(holdCtx, source.Addr().Unmap(), tgt)
	if err != nil {
		slog.Info("closed connection to idle service", "service", tgt.service, "error", err)
		return
	}
	defer server.Close()
	end := context.AfterFunc(ctx, func() {
		client.Close()
		server.Close()
	})
	defer end()
	copyBoth(client, server.(*net.TCPConn))
}

// reach connects to an endpoint on behalf of a client. It wakes a service that has no endpoints.
func (h *holder) reach(ctx context.Context, client netip.Addr, tgt target) (net.Conn, error) {
	dialer := net.Dialer{Timeout: dialTimeout}
	for {
		endpoint, err := h.waker.endpointFor(ctx, client, tgt)
		if err != nil {
			return nil, err
		}
		server, err := dialer.DialContext(ctx, "tcp", endpoint.String())
		if err == nil {
			return server, nil
		}
		select { // retry, because the endpoint might be starting or stopping
		case <-ctx.Done():
			return nil, err
		case <-time.After(retryDelay):
		}
	}
}

// copyBoth copies data in both directions until both directions have ended.
func copyBoth(client, server *net.TCPConn) {
	var tasks sync.WaitGroup
	for _, pair := range [][2]*net.TCPConn{{client, server}, {server, client}} {
		tasks.Go(func() {
			_, err := io.Copy(pair[0], pair[1])
			if err != nil {
				client.Close()
				server.Close()
				return
			}
			_ = pair[0].CloseWrite() // the other direction remains open
		})
	}
	tasks.Wait()
}

// originalDestination returns the destination that a connection had before it was redirected.
func originalDestination(client *net.TCPConn) (address netip.AddrPort, err error) {
	local, err := netip.ParseAddrPort(client.LocalAddr().String())
	if err != nil {
		return address, err
	}
	raw, err := client.SyscallConn()
	if err != nil {
		return address, err
	}
	read := originalIPv4
	if ipfamily.Of(local.Addr()) == ipfamily.IPv6 {
		read = originalIPv6
	}
	var optErr error
	err = raw.Control(func(fd uintptr) { address, optErr = read(int(fd)) })
	return address, errors.Join(err, optErr)
}

func originalIPv4(fd int) (address netip.AddrPort, err error) {
	// GetsockoptIPv6Mreq is for another option, but its result is large enough for the first fields
	// of a struct sockaddr_in: family, port and address.
	socket, err := unix.GetsockoptIPv6Mreq(fd, unix.IPPROTO_IP, unix.SO_ORIGINAL_DST)
	if err != nil {
		return address, err
	}
	ip := [4]byte(socket.Multiaddr[4:8])
	return netip.AddrPortFrom(netip.AddrFrom4(ip), binary.BigEndian.Uint16(socket.Multiaddr[2:4])), nil
}

func originalIPv6(fd int) (address netip.AddrPort, err error) {
	// GetsockoptIPv6MTUInfo is for another option, but its result begins with a struct
	// sockaddr_in6.
	socket, err := unix.GetsockoptIPv6MTUInfo(fd, unix.IPPROTO_IPV6, unix.SO_ORIGINAL_DST)
	if err != nil {
		return address, err
	}
	port := binary.NativeEndian.AppendUint16(nil, socket.Addr.Port)
	return netip.AddrPortFrom(netip.AddrFrom16(socket.Addr.Addr), binary.BigEndian.Uint16(port)), nil
}
