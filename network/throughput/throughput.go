// Package throughput measures the rate at which two programs can exchange data over TCP. It also
// measures the round-trip time of one byte, and the share of UDP datagrams that arrive. It is a
// small replacement for iperf3, because hosts and images might not contain iperf3.
//
// Source: OpenShift Container Platform 3.11 Cluster Administration, Troubleshooting Throughput
// Issues.
package throughput

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"
)

// Port is a server's default port, which is the same as iperf3's.
const Port = 5201

// The first byte that a client sends on a connection selects the server's action.
const (
	discard = 'd' // discard all bytes, and send one byte at the end
	echo    = 'e' // return all bytes
	count   = 'u' // count datagrams, and return their number
)

const (
	// rounds is the number of single bytes that are sent to measure the latency.
	rounds = 1000
	// bufferBytes is the number of bytes per write.
	bufferBytes = 128 << 10
	// idleTimeout is how long a connection can be idle before it is closed.
	idleTimeout = 10 * time.Second
)

// Result contains the results of a TCP measurement.
type Result struct {
	Bytes    int64
	Duration time.Duration
	// Median and P99 are the round-trip times of one byte.
	Median, P99 time.Duration
}

// Rate returns the rate in bits per second.
func (r Result) Rate() float64 { return float64(r.Bytes) * 8 / r.Duration.Seconds() }

// Dial connects to a server over the given network: "tcp" or "udp".
type Dial func(network string) (net.Conn, error)

// Serve serves measurements until ctx is done. packets has the same address as the listener.
func Serve(ctx context.Context, listener net.Listener, packets net.PacketConn) error {
	defer context.AfterFunc(ctx, func() { _ = listener.Close() })()
	for {
		conn, err := listener.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("accept connection: %w", err)
		}
		// Serve one measurement at a time, because concurrent measurements would affect each
		// other's results.
		stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
		serve(conn, packets)
		stop()
		_ = conn.Close()
	}
}

// serve serves a connection. If an error occurs, serve closes the connection, so that the client
// detects the error.
func serve(conn net.Conn, packets net.PacketConn) {
	buffer := make([]byte, bufferBytes)
	kind := buffer[:1]
	_ = conn.SetDeadline(time.Now().Add(idleTimeout))
	if _, err := io.ReadFull(conn, kind); err != nil {
		return
	}
	if kind[0] == count {
		countDatagrams(conn, packets)
		return
	}
	isEcho := kind[0] == echo
	for {
		_ = conn.SetDeadline(time.Now().Add(idleTimeout))
		size, err := conn.Read(buffer)
		if errors.Is(err, io.EOF) && !isEcho {
			_, _ = conn.Write(buffer[:1])
		}
		if err != nil {
			return
		}
		if isEcho {
			if _, err := conn.Write(buffer[:size]); err != nil {
				return
			}
		}
	}
}

// Measure measures a connection to a server for the given duration.
func Measure(ctx context.Context, dial Dial, duration time.Duration) (r Result, err error) {
	if r.Median, r.P99, err = latency(ctx, dial); err != nil {
		return r, fmt.Errorf("measure latency: %w", err)
	}
	if r.Bytes, r.Duration, err = stream(ctx, dial, duration); err != nil {
		return r, fmt.Errorf("measure throughput: %w", err)
	}
	return r, nil
}

// latency sends single bytes, and waits for each of them to return before it sends the next byte.
func latency(ctx context.Context, dial Dial) (median, p99 time.Duration, err error) {
	conn, err := open(ctx, dial, echo)
	if err != nil {
		return 0, 0, err
	}
	defer conn.Close()
	var times []time.Duration
	for one := []byte{0}; len(times) < rounds; {
		_ = conn.SetDeadline(time.Now().Add(idleTimeout))
		start := time.Now()
		if _, err := conn.Write(one); err != nil {
			return 0, 0, err
		}
		if _, err := io.ReadFull(conn, one); err != nil {
			return 0, 0, err
		}
		times = append(times, time.Since(start))
	}
	slices.Sort(times)
	return times[rounds/2], times[rounds*99/100], nil
}

// stream sends bytes, and waits until the server has received all of them.
func stream(ctx context.Context, dial Dial, duration time.Duration) (sent int64, elapsed time.Duration, err error) {
	conn, err := open(ctx, dial, discard)
	if err != nil {
		return 0, 0, err
	}
	defer conn.Close()
	start := time.Now()
	for buffer := make([]byte, bufferBytes); time.Since(start) < duration; {
		_ = conn.SetDeadline(time.Now().Add(idleTimeout))
		size, err := conn.Write(buffer)
		if sent += int64(size); err != nil {
			return 0, 0, err
		}
	}
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		if err := half.CloseWrite(); err != nil {
			return 0, 0, err
		}
	}
	if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
		return 0, 0, err
	}
	return sent, time.Since(start), nil
}

// open connects to the server. The connection is closed when ctx is done.
func open(ctx context.Context, dial Dial, kind byte) (net.Conn, error) {
	conn, err := dial("tcp")
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { _ = conn.Close() })
	if _, err := conn.Write([]byte{kind}); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}
