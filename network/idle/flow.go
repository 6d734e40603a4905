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
)

const (
	// maxWaiting is how many datagrams of one sender wait for a service, and maxBytes what all of them have; further ones are dropped.
	maxWaiting = 32
	maxBytes   = 16 << 20
	// maxDatagram is the longest payload of a datagram over IPv4.
	maxDatagram = 65507
)

// flows are the senders of datagrams to idle services.
type flows struct {
	mu   sync.Mutex
	from map[route]*flow
	room *semaphore.Weighted
}

// route is a sender and what it sends to.
type route struct{ client, service netip.AddrPort }

// flow is what one sender sends to a port of a service, and its answers.
type flow struct {
	route
	of      target
	waiting chan []byte
	end     context.CancelFunc
}

func newFlows() flows {
	return flows{from: map[route]*flow{}, room: semaphore.NewWeighted(maxBytes)}
}

// end ends the flows that f chooses.
func (s *flows) end(f func(*flow) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, flow := range s.from {
		if f(flow) {
			flow.end()
		}
	}
}

// receive holds datagrams until the log is closed, and returns when the last flow has ended.
func (h *holder) receive(ctx context.Context, log *packets) {
	var held sync.WaitGroup
	defer held.Wait()
	for {
		received, err := log.next()
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			slog.Error("cannot receive datagrams to idle services", "err", err)
			select {
			case <-ctx.Done():
				return
			case <-time.After(pause):
			}
			continue
		}
		for _, d := range received {
			if flow := h.flow(ctx, d.route, &held); flow != nil {
				h.flows.hold(flow, d.payload)
			}
		}
	}
}

// flow is that of a datagram, a new one if there is none yet, or nil where there is no service or no room for it.
func (h *holder) flow(ctx context.Context, way route, held *sync.WaitGroup) *flow {
	of, known := h.find(way.service, corev1.ProtocolUDP)
	h.flows.mu.Lock()
	defer h.flows.mu.Unlock()
	if found := h.flows.from[way]; found != nil {
		return found
	}
	if !known || !h.seats.take(of.service) {
		return nil
	}
	ctx, end := context.WithTimeout(ctx, maxWait)
	started := &flow{route: way, of: of, waiting: make(chan []byte, maxWaiting), end: end}
	h.flows.from[way] = started
	held.Go(func() {
		defer h.seats.leave(of.service)
		defer h.flows.forget(started)
		if err := h.deliver(ctx, started); err != nil {
			slog.Info("datagrams to an idle service were given up", "service", of.service, "err", err)
		}
	})
	return started
}

// hold keeps a datagram until it is delivered, or drops it, as those of a flow that has ended.
func (s *flows) hold(f *flow, payload []byte) {
	size := int64(len(payload))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.from[f.route] != f || !s.room.TryAcquire(size) {
		return
	}
	select {
	case f.waiting <- payload:
	default:
		s.room.Release(size)
	}
}

// forget ends a flow and drops what waits.
func (s *flows) forget(f *flow) {
	f.end()
	s.mu.Lock()
	delete(s.from, f.route)
	s.mu.Unlock()
	for {
		select {
		case payload := <-f.waiting:
			s.room.Release(int64(len(payload)))
		default:
			return
		}
	}
}

// deliver waits for an endpoint and sends it what comes until ctx ends. Answers go to the sender from where it sent to.
func (h *holder) deliver(ctx context.Context, f *flow) error {
	endpoint, err := h.wakes.endpoint(ctx, f.of)
	if err != nil {
		return err
	}
	server, err := net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(endpoint))
	if err != nil {
		return err
	}
	defer server.Close()
	client, err := answering(ctx, f.route)
	if err != nil {
		return err
	}
	defer client.Close()
	var answers sync.WaitGroup
	defer answers.Wait()
	defer context.AfterFunc(ctx, func() { server.Close() })()
	defer server.Close()
	answers.Go(func() { answer(client, server) })
	for {
		select {
		case <-ctx.Done():
			return nil
		case payload := <-f.waiting:
			_, err := server.Write(payload)
			h.flows.room.Release(int64(len(payload)))
			if err != nil && !lost(err) {
				return fmt.Errorf("send to %s: %w", endpoint, err)
			}
		}
	}
}

// answer passes on what an endpoint answers until its socket is closed.
func answer(client net.Conn, server *net.UDPConn) {
	buffer := make([]byte, maxDatagram)
	for {
		n, err := server.Read(buffer)
		if err == nil {
			_, _ = client.Write(buffer[:n]) // datagrams may be lost
			continue
		}
		if !lost(err) {
			return
		}
	}
}

// lost says whether an error is only that a datagram before did not arrive.
func lost(err error) bool {
	return errors.Is(err, unix.ECONNREFUSED) || errors.Is(err, unix.EHOSTUNREACH) || errors.Is(err, unix.ENETUNREACH)
}

// answering is a socket that sends to a client from the address of a service, which is none of this host's.
func answering(ctx context.Context, way route) (net.Conn, error) {
	dialer := net.Dialer{LocalAddr: net.UDPAddrFromAddrPort(way.service), Control: func(_, _ string, raw syscall.RawConn) error {
		var failure error
		err := raw.Control(func(fd uintptr) {
			failure = errors.Join(unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1),
				unix.SetsockoptInt(int(fd), unix.SOL_IP, unix.IP_TRANSPARENT, 1))
		})
		return errors.Join(err, failure)
	}}
	client, err := dialer.DialContext(ctx, "udp4", way.client.String())
	if err != nil {
		return nil, fmt.Errorf("answer from %s: %w", way.service, err)
	}
	return client, nil
}
