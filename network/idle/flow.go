package idle

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"github.com/slipway-platform/slipway/network/ipfamily"
)

const (
	// maxQueued is the maximum number of queued datagrams per sender. maxQueuedBytes is the maximum
	// total size of all queued datagrams, in bytes. Further datagrams are dropped.
	maxQueued      = 32
	maxQueuedBytes = 16 << 20
	// maxDatagram is the maximum payload of a datagram over IPv6, in bytes.
	maxDatagram = 65527
)

// flows contains the flows of datagrams to idle services.
type flows struct {
	mu      sync.Mutex
	byRoute map[route]*datagramFlow
	memory  *semaphore.Weighted
}

// route identifies a flow: a sender, and the service address to which it sends.
type route struct{ client, service netip.AddrPort }

// datagramFlow queues the datagrams from one sender to one service port, and forwards the
// responses.
type datagramFlow struct {
	route
	target target
	queue  chan []byte
	cancel context.CancelFunc
}

func newFlows() flows {
	return flows{byRoute: map[route]*datagramFlow{}, memory: semaphore.NewWeighted(maxQueuedBytes)}
}

// cancel cancels the flows for which f returns true.
func (s *flows) cancel(f func(*datagramFlow) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, flow := range s.byRoute {
		if f(flow) {
			flow.cancel()
		}
	}
}

// receive queues datagrams from the packet log until the log is closed, and returns when the last
// flow has ended.
func (h *holder) receive(ctx context.Context, log *packetLog) {
	var tasks sync.WaitGroup
	defer tasks.Wait()
	for {
		datagrams, err := log.next()
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			slog.Error("cannot receive datagrams to idle services", "error", err)
			select {
			case <-ctx.Done():
				return
			case <-time.After(retryDelay):
			}
			continue
		}
		for _, d := range datagrams {
			if flow := h.flow(ctx, d.route, &tasks); flow != nil {
				h.flows.enqueue(flow, d.payload)
			}
		}
	}
}

// flow returns the flow to which a datagram belongs, and creates the flow if necessary. It returns
// nil if no service has the destination address, or if the limit is reached.
func (h *holder) flow(ctx context.Context, r route, tasks *sync.WaitGroup) *datagramFlow {
	tgt, ok := h.find(r.service, corev1.ProtocolUDP)
	h.flows.mu.Lock()
	defer h.flows.mu.Unlock()
	if existing := h.flows.byRoute[r]; existing != nil {
		return existing
	}
	if !ok || !h.limit.acquire(tgt.service) {
		return nil
	}
	ctx, end := context.WithTimeout(ctx, holdTimeout)
	created := &datagramFlow{route: r, target: tgt, queue: make(chan []byte, maxQueued), cancel: end}
	h.flows.byRoute[r] = created
	tasks.Go(func() {
		defer h.limit.release(tgt.service)
		defer h.flows.remove(created)
		if err := h.deliver(ctx, created); err != nil {
			slog.Info("dropped datagrams to idle service", "service", tgt.service, "error", err)
		}
	})
	return created
}

// enqueue queues a datagram. It drops the datagram if the flow has ended or a limit is reached.
func (s *flows) enqueue(f *datagramFlow, payload []byte) {
	size := int64(len(payload))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byRoute[f.route] != f || !s.memory.TryAcquire(size) {
		return
	}
	select {
	case f.queue <- payload:
	default:
		s.memory.Release(size)
	}
}

// remove ends a flow and drops its queue.
func (s *flows) remove(f *datagramFlow) {
	f.cancel()
	s.mu.Lock()
	delete(s.byRoute, f.route)
	s.mu.Unlock()
	for {
		select {
		case payload := <-f.queue:
			s.memory.Release(int64(len(payload)))
		default:
			return
		}
	}
}

// deliver waits for an endpoint and sends the flow's datagrams to it until ctx is done. Responses
// are sent from the service's address.
func (h *holder) deliver(ctx context.Context, f *datagramFlow) error {
	endpoint, err := h.waker.endpointFor(ctx, f.client.Addr().Unmap(), f.target)
	if err != nil {
		return err
	}
	server, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(endpoint))
	if err != nil {
		return err
	}
	defer server.Close()
	client, err := dialFrom(ctx, f.route)
	if err != nil {
		return err
	}
	defer client.Close()
	var tasks sync.WaitGroup
	defer tasks.Wait()
	defer context.AfterFunc(ctx, func() { server.Close() })()
	defer server.Close()
	tasks.Go(func() { copyResponses(client, server) })
	for {
		select {
		case <-ctx.Done():
			return nil
		case payload := <-f.queue:
			_, err := server.Write(payload)
			h.flows.memory.Release(int64(len(payload)))
			if err != nil && !isDeliveryError(err) {
				return fmt.Errorf("send to %s: %w", endpoint, err)
			}
		}
	}
}

// copyResponses forwards the endpoint's responses until the socket is closed.
func copyResponses(client net.Conn, server *net.UDPConn) {
	buffer := make([]byte, maxDatagram)
	for {
		n, err := server.Read(buffer)
		if err == nil {
			_, _ = client.Write(buffer[:n]) // an undelivered response is lost, as on any network
			continue
		}
		if !isDeliveryError(err) {
			return
		}
	}
}

// isDeliveryError reports whether an error means only that an earlier datagram was not delivered.
func isDeliveryError(err error) bool {
	return errors.Is(err, unix.ECONNREFUSED) || errors.Is(err, unix.EHOSTUNREACH) || errors.Is(err, unix.ENETUNREACH)
}

// dialFrom returns a socket that sends to a client from a service's address, although the address
// does not belong to this host.
func dialFrom(ctx context.Context, r route) (net.Conn, error) {
	level, transparent := unix.SOL_IP, unix.IP_TRANSPARENT
	if ipfamily.Of(r.service.Addr()) == ipfamily.IPv6 {
		level, transparent = unix.SOL_IPV6, unix.IPV6_TRANSPARENT
	}
	dialer := net.Dialer{LocalAddr: net.UDPAddrFromAddrPort(r.service), Control: func(_, _ string, raw syscall.RawConn) error {
		var optErr error
		err := raw.Control(func(fd uintptr) {
			optErr = errors.Join(unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1),
				unix.SetsockoptInt(int(fd), level, transparent, 1))
		})
		return errors.Join(err, optErr)
	}}
	client, err := dialer.DialContext(ctx, "udp", r.client.String())
	if err != nil {
		return nil, fmt.Errorf("send from %s: %w", r.service, err)
	}
	return client, nil
}
