package throughput

import (
	"context"
	"net"
	"testing"
	"time"
)

// newServer starts a server that stops when the test ends.
func newServer(t *testing.T) Dial {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	packets, err := net.ListenPacket("udp4", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- Serve(ctx, listener, packets) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		packets.Close()
	})
	return func(network string) (net.Conn, error) { return net.Dial(network, listener.Addr().String()) }
}

func TestMeasurementCountsReceivedBytes(t *testing.T) {
	dial := newServer(t)
	for range 2 {
		r, err := Measure(t.Context(), dial, 50*time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		if r.Bytes < bufferBytes || r.Rate() <= 0 || r.Median <= 0 || r.P99 < r.Median {
			t.Errorf("the result is %+v", r)
		}
	}
}

func TestMeasurementNeedsServer(t *testing.T) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
	dial := func(network string) (net.Conn, error) { return net.Dial(network, listener.Addr().String()) }
	if _, err := Measure(t.Context(), dial, time.Millisecond); err == nil {
		t.Error("a measurement over TCP without a server has a result")
	}
	if _, err := MeasureDatagrams(t.Context(), dial, time.Millisecond, 1e6); err == nil {
		t.Error("a measurement over UDP without a server has a result")
	}
}

func TestDatagramsAreCounted(t *testing.T) {
	dial := newServer(t)
	for range 2 {
		r, err := MeasureDatagrams(t.Context(), dial, 50*time.Millisecond, 10e6)
		if err != nil {
			t.Fatal(err)
		}
		// At 10 Mbit/s, 52 datagrams are sent in 50 ms. Fewer are sent only if the machine stalls.
		if r.Sent < 1 || r.Sent > 60 || r.Received < 1 || r.Received > r.Sent || r.Duration <= 0 {
			t.Errorf("the result is %+v", r)
		}
	}
}

// TestDatagramsOfOthersAreIgnored sends datagrams that do not belong to a measurement.
func TestDatagramsOfOthersAreIgnored(t *testing.T) {
	dial := newServer(t)
	stranger, err := dial("udp")
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	for range 10 {
		if _, err := stranger.Write(make([]byte, datagramBytes)); err != nil {
			t.Fatal(err)
		}
	}
	r, err := MeasureDatagrams(t.Context(), dial, 5*time.Millisecond, 1e6)
	if err != nil || r.Received > r.Sent {
		t.Errorf("the result is %+v, %v", r, err)
	}
}
