package multitenant

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// port is the port to which datagrams are sent.
const port = 9000

// stream is a sender in one pod that sends datagrams continuously, and a receiver in another pod.
type stream struct {
	sent, received atomic.Int64
	last           atomic.Int64 // time of the last received datagram, in nanoseconds
}

// newStream starts a stream that is stopped when the test ends.
func newStream(t *testing.T, from tenant, sender string, to tenant, receiver string) *stream {
	t.Helper()
	var conn net.Conn
	var listener net.PacketConn
	address := net.JoinHostPort(to.Pod(receiver).Status.PodIP, fmt.Sprint(port))
	err := errors.Join(
		to.inPod(receiver, func() (err error) {
			listener, err = net.ListenPacket("udp4", fmt.Sprintf(":%d", port))
			return err
		}),
		from.inPod(sender, func() (err error) {
			conn, err = net.Dial("udp4", address)
			return err
		}))
	if err != nil {
		t.Fatal(err)
	}
	s := &stream{}
	var tasks sync.WaitGroup
	ctx, stop := context.WithCancel(context.Background())
	tasks.Go(func() {
		ticker := time.NewTicker(time.Millisecond)
		defer ticker.Stop()
		for ctx.Err() == nil {
			_, _ = conn.Write([]byte("x")) // this fails while no process listens
			s.sent.Add(1)
			<-ticker.C
		}
	})
	tasks.Go(func() {
		for buffer := make([]byte, 1); ; {
			if _, _, err := listener.ReadFrom(buffer); err != nil {
				return
			}
			s.received.Add(1)
			s.last.Store(time.Now().UnixNano())
		}
	})
	t.Cleanup(func() {
		stop()
		conn.Close()
		listener.Close()
		tasks.Wait()
	})
	return s
}

// more waits until the sender has sent count more datagrams. It returns the number of these
// datagrams that arrived.
func (s *stream) more(c tenant, count int64) int64 {
	sent, received := s.sent.Load(), s.received.Load()
	c.WaitFor(fmt.Sprintf("%d datagrams", count), func(context.Context) error {
		if now := s.sent.Load(); now < sent+count {
			return fmt.Errorf("%d were sent", now-sent)
		}
		return nil
	})
	return s.received.Load() - received
}

// passes waits until datagrams arrive or, if want is false, until many in a row do not arrive.
func (s *stream) passes(c tenant, want bool) {
	c.WaitFor(fmt.Sprintf("arrival of datagrams: %t", want), func(context.Context) error {
		if arrived := s.more(c, 100); arrived > 0 != want {
			return fmt.Errorf("%d arrived", arrived)
		}
		return nil
	})
}

// TestPacketsPassOnlyWhileProjectsAreJoined sends datagrams continuously while networks change.
func TestPacketsPassOnlyWhileProjectsAreJoined(t *testing.T) {
	s := newTenants(t)
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
				t.Errorf("%s: %d datagrams arrived at %s", when, arrived, name)
			}
		}
	}
	closed("before the projects are joined")

	// Changes to other projects do not open a connection.
	third := s.Namespace + "-third"
	s.createProject(t, third)
	before := received()
	for range 3 {
		for _, other := range []string{s.red.Namespace, s.blue.Namespace} {
			s.podNetwork("join-projects", "--to="+other, third)
			s.podNetwork("make-projects-global", third)
			s.podNetwork("isolate-projects", third)
		}
	}
	closed("while another project is joined")
	if after := received(); after != before {
		t.Errorf("while another project was joined, %d datagrams arrived", after-before)
	}

	for range 2 {
		s.podNetwork("join-projects", "--to="+s.blue.Namespace, s.red.Namespace)
		pass(true)
		s.podNetwork("isolate-projects", s.red.Namespace)
		done := time.Now()
		pass(false)
		for name, stream := range streams {
			t.Logf("the last datagram arrived at %s %s after the end of the command", name, time.Unix(0, stream.last.Load()).Sub(done))
		}
		closed("after the project is isolated")
		same.passes(s.red, true)
	}
}
