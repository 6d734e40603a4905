package multitenant

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// port is the port to which the tests send datagrams.
const port = 9000

// end is one end of a stream: a pod or a machine.
type end struct {
	name    string
	run     func(func() error) error // runs a function in the end's network
	address netip.Addr
}

// end returns a pod as one end of a stream.
func (t tenant) end(pod string) end {
	return end{t.Namespace + "/" + pod, func(f func() error) error { return t.inPod(pod, f) }, t.address(pod)}
}

// stream consists of a sender that continuously sends numbered messages, and a receiver. It uses
// the network "udp4" or "tcp4". A TCP stream uses one connection, which is opened when the stream
// is created.
type stream struct {
	name           string
	sent, received atomic.Int64
	last           atomic.Int64 // time of the last arrival, in nanoseconds
	local          netip.AddrPort
	stopped        atomic.Pointer[error] // the error with which the sender stopped, or nil

	mu            sync.Mutex
	next, missing int64 // highest received number plus one, and the count of missing lower numbers
	sources       map[netip.Addr]int64
}

// newStream starts a stream of datagrams that is stopped when the test ends.
func newStream(t *testing.T, from tenant, sender string, to tenant, receiver string) *stream {
	t.Helper()
	return openStream(t, "udp4", from.end(sender), to.end(receiver))
}

const (
	messageSize = 8
	// bufferSize is the size of the sockets' buffers. It is so large that they do not overflow if
	// this process gets no CPU time for seconds, or if no message arrives for minutes.
	bufferSize = 16 << 20
)

// setBuffer sets the size of a socket's buffer. option is SO_RCVBUFFORCE or SO_SNDBUFFORCE.
func setBuffer(socket syscall.Conn, option int) error {
	raw, err := socket.SyscallConn()
	if err != nil {
		return err
	}
	var result error
	err = raw.Control(func(fd uintptr) { result = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, option, bufferSize) })
	return errors.Join(err, result)
}

// openStream starts a stream that is stopped when the test ends. Each stream has its own port.
func openStream(t *testing.T, network string, from, to end) *stream {
	t.Helper()
	s := &stream{name: fmt.Sprintf("%s from %s to %s", network, from.name, to.name), sources: map[netip.Addr]int64{}}
	accept, address, stop, err := listenFor(network, to)
	if err != nil {
		t.Fatalf("%s: %v", s.name, err)
	}
	t.Cleanup(stop)
	var conn net.Conn
	err = from.run(func() (err error) {
		if conn, err = net.DialTimeout(network, address, 2*requestTimeout); err != nil {
			return err
		}
		return setBuffer(conn.(syscall.Conn), unix.SO_SNDBUFFORCE)
	})
	if err != nil {
		t.Fatalf("%s: %v", s.name, err)
	}
	receiver, err := accept()
	if err != nil {
		conn.Close()
		t.Fatalf("%s: %v", s.name, err)
	}
	s.local = netip.MustParseAddrPort(conn.LocalAddr().String())
	var tasks sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	tasks.Go(func() { s.send(ctx, conn) })
	tasks.Go(func() { s.receive(receiver) })
	t.Cleanup(func() {
		cancel()
		conn.Close()
		receiver.(io.Closer).Close()
		tasks.Wait()
	})
	return s
}

// listenFor creates the receiver's socket for a stream. accept returns a net.PacketConn, or the
// net.Conn of the TCP connection.
func listenFor(network string, to end) (accept func() (any, error), address string, stop func(), err error) {
	free := net.JoinHostPort(to.address.String(), "0")
	if network == "udp4" {
		var packets net.PacketConn
		err = to.run(func() (err error) {
			if packets, err = net.ListenPacket(network, free); err != nil {
				return err
			}
			return setBuffer(packets.(*net.UDPConn), unix.SO_RCVBUFFORCE)
		})
		if err != nil {
			return nil, "", nil, err
		}
		return func() (any, error) { return packets, nil }, packets.LocalAddr().String(), func() {}, nil
	}
	var listener net.Listener
	err = to.run(func() (err error) { listener, err = net.Listen(network, free); return err })
	if err != nil {
		return nil, "", nil, err
	}
	return func() (any, error) { return listener.Accept() }, listener.Addr().String(), func() { listener.Close() }, nil
}

// send sends a number every millisecond until ctx is done.
func (s *stream) send(ctx context.Context, conn net.Conn) {
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for number := int64(0); ctx.Err() == nil; number++ {
		_, err := conn.Write(binary.BigEndian.AppendUint64(nil, uint64(number)))
		if _, isTCP := conn.(*net.TCPConn); isTCP && err != nil {
			s.stopped.Store(&err)
			return
		}
		s.sent.Add(1) // ignore an error, because a rule can reject a datagram
		<-ticker.C
	}
}

// receive counts messages until the socket is closed.
func (s *stream) receive(socket any) {
	buffer := make([]byte, messageSize)
	for {
		var err error
		var source net.Addr
		switch socket := socket.(type) {
		case net.PacketConn:
			_, source, err = socket.ReadFrom(buffer)
		case net.Conn:
			source = socket.RemoteAddr()
			_, err = io.ReadFull(socket, buffer)
		}
		if err != nil {
			return
		}
		s.arrive(int64(binary.BigEndian.Uint64(buffer)), netip.MustParseAddrPort(source.String()).Addr())
	}
}

func (s *stream) arrive(number int64, source netip.Addr) {
	s.mu.Lock()
	if number >= s.next {
		s.missing += number - s.next
		s.next = number + 1
	} else {
		s.missing--
	}
	s.sources[source]++
	s.mu.Unlock()
	s.received.Add(1)
	s.last.Store(time.Now().UnixNano())
}

// reset discards the counts of missing messages and of source addresses.
func (s *stream) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.missing, s.sources = 0, map[netip.Addr]int64{}
}

// lost waits until a message arrives that was sent after the call. It returns the number of
// messages that have been missing since reset.
func (s *stream) lost(c tenant) int64 {
	sent := s.sent.Load()
	c.WaitFor("arrival of "+s.name, func(context.Context) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.next <= sent {
			err := fmt.Errorf("%d of %d messages", s.next, sent)
			if stopped := s.stopped.Load(); stopped != nil {
				err = errors.Join(err, *stopped)
			}
			return err
		}
		return nil
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.missing
}

// more waits until the sender has sent count more messages. It returns the number of messages that
// arrived in the meantime.
func (s *stream) more(c tenant, count int64) int64 {
	sent, received := s.sent.Load(), s.received.Load()
	c.WaitFor(fmt.Sprintf("%d messages of %s", count, s.name), func(context.Context) error {
		if now := s.sent.Load(); now < sent+count && s.stopped.Load() == nil {
			return fmt.Errorf("%d were sent", now-sent)
		}
		return nil
	})
	return s.received.Load() - received
}

// passes waits until messages arrive or, if want is false, until many consecutive messages have not
// arrived.
func (s *stream) passes(c tenant, want bool) {
	c.WaitFor(fmt.Sprintf("arrival of %s: %t", s.name, want), func(context.Context) error {
		if arrived := s.more(c, 100); arrived > 0 != want {
			return fmt.Errorf("%d arrived", arrived)
		}
		return nil
	})
}

// isTracked reports whether the calling thread's network has a conntrack entry for the stream.
func (s *stream) isTracked() (bool, error) {
	table, err := os.ReadFile("/proc/thread-self/net/nf_conntrack")
	for line := range strings.Lines(string(table)) {
		if strings.Contains(line, "src="+s.local.Addr().String()+" ") && strings.Contains(line, fmt.Sprintf("sport=%d ", s.local.Port())) {
			return true, nil
		}
	}
	return false, err
}

// TestPacketsPassOnlyWhileProjectsAreJoined continuously sends datagrams and TCP messages while
// networks change. The packets of the TCP connection to the distant host bypass the kernel's
// network stack (see package network/vxlan).
func TestPacketsPassOnlyWhileProjectsAreJoined(t *testing.T) {
	s := sharedTenants(t)
	same := newStream(t, s.red, "near", s.red, "far")
	streams := map[string]*stream{
		"near": newStream(t, s.red, "far", s.blue, "near"), "far": newStream(t, s.red, "near", s.blue, "far"),
		"distant": newStream(t, s.red, "near", s.blue, "distant"),
	}
	received := func() (sum int64) {
		for _, stream := range streams {
			sum += stream.received.Load()
		}
		return sum
	}
	pass := func(want bool) {
		t.Helper()
		for _, stream := range streams {
			stream.passes(s.red, want)
		}
	}
	same.passes(s.red, true)
	closed := func(when string) {
		t.Helper()
		for name, stream := range streams {
			if arrived := stream.more(s.red, 300); arrived > 0 {
				t.Errorf("%s: %d messages arrived at %s", when, arrived, name)
			}
		}
	}
	closed("before the projects are joined")

	// Changes to other projects must not open a connection between these projects.
	third := s.Namespace + "-third"
	s.createProject(t, third)
	before := received()
	same.reset()
	for range 3 {
		for _, other := range []string{s.red.Namespace, s.blue.Namespace} {
			s.podNetwork("join-projects", "--to="+other, third)
			s.podNetwork("make-projects-global", third)
			s.podNetwork("isolate-projects", third)
		}
	}
	closed("while another project is joined")
	if after := received(); after != before {
		t.Errorf("while another project was joined, %d messages arrived", after-before)
	}

	for round := range 2 {
		s.podNetwork("join-projects", "--to="+s.blue.Namespace, s.red.Namespace)
		pass(true)
		for _, pod := range pods() {
			name := fmt.Sprintf("connection %d to %s", round, pod)
			streams[name] = openStream(t, "tcp4", s.red.end("near"), s.blue.end(pod))
			streams[name].passes(s.red, true)
		}
		direct := streams[fmt.Sprintf("connection %d to distant", round)]
		tracked := false
		err := s.distant.Do(func() (err error) { tracked, err = direct.isTracked(); return err })
		if err != nil || tracked {
			t.Errorf("the connection to the distant host passes the network stack: %t, %v", tracked, err)
		}
		s.podNetwork("isolate-projects", s.red.Namespace)
		done := time.Now()
		pass(false)
		for name, stream := range streams {
			t.Logf("the last message arrived at %s %s after the end of the command", name, time.Unix(0, stream.last.Load()).Sub(done))
		}
		closed("after the project is isolated")
	}
	if lost := same.lost(s.red); lost > 0 {
		t.Errorf("%d messages in the project itself were lost", lost)
	}
}
