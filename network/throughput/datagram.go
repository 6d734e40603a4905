package throughput

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"
)

const (
	// datagramBytes is the payload size of a datagram, in bytes. It fits into a packet on every
	// device and tunnel.
	datagramBytes = 1200
	// tokenBytes is the size, in bytes, of the token at the start of each datagram in a
	// measurement.
	tokenBytes = 16
	// quietPeriod is the time without datagrams after which no datagram is considered to be in
	// transit.
	quietPeriod = 200 * time.Millisecond
	// batchPeriod is how far a client can be ahead of its rate before it pauses.
	batchPeriod = time.Millisecond
)

// Datagrams contains the results of a UDP measurement.
type Datagrams struct {
	Sent, Received int64 // number of datagrams
	Duration       time.Duration
}

// Rates returns the rates at which data was sent and received, in bits per second, without UDP and
// IP headers.
func (d Datagrams) Rates() (sent, received float64) {
	bits := datagramBytes * 8 / d.Duration.Seconds()
	return float64(d.Sent) * bits, float64(d.Received) * bits
}

// countDatagrams counts the datagrams that begin with a connection's token until the client closes
// its side of the connection for writing. It then sends the number of datagrams to the client.
func countDatagrams(conn net.Conn, packets net.PacketConn) {
	token := make([]byte, tokenBytes)
	if _, err := io.ReadFull(conn, token); err != nil {
		return
	}
	if _, err := conn.Write(token[:1]); err != nil {
		return
	}
	received, last := uint64(0), time.Now()
	for buffer := make([]byte, datagramBytes); ; {
		_ = packets.SetReadDeadline(time.Now().Add(quietPeriod))
		size, _, err := packets.ReadFrom(buffer)
		if err == nil && bytes.HasPrefix(buffer[:size], token) {
			received, last = received+1, time.Now()
			continue
		}
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return
		}
		if time.Since(last) < quietPeriod {
			continue
		}
		_ = conn.SetReadDeadline(time.Now().Add(batchPeriod))
		_, err = conn.Read(buffer[:1])
		if errors.Is(err, io.EOF) {
			break
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(last) > idleTimeout {
			return
		}
	}
	_ = conn.SetWriteDeadline(time.Now().Add(idleTimeout))
	_, _ = conn.Write(binary.BigEndian.AppendUint64(nil, received))
}

// MeasureDatagrams sends datagrams to a server for the given duration. rate is in bits per second.
func MeasureDatagrams(ctx context.Context, dial Dial, duration time.Duration, rate float64) (Datagrams, error) {
	control, err := open(ctx, dial, count)
	if err != nil {
		return Datagrams{}, fmt.Errorf("measure datagrams: %w", err)
	}
	defer control.Close()
	_ = control.SetDeadline(time.Now().Add(idleTimeout))
	token := make([]byte, tokenBytes)
	_, _ = rand.Read(token)
	if _, err := control.Write(token); err != nil {
		return Datagrams{}, fmt.Errorf("measure datagrams: %w", err)
	}
	if _, err := io.ReadFull(control, make([]byte, 1)); err != nil {
		return Datagrams{}, fmt.Errorf("measure datagrams: %w", err)
	}
	r, err := send(ctx, dial, token, duration, rate)
	if err != nil {
		return r, fmt.Errorf("measure datagrams: %w", err)
	}
	if half, ok := control.(interface{ CloseWrite() error }); ok {
		if err := half.CloseWrite(); err != nil {
			return r, fmt.Errorf("measure datagrams: %w", err)
		}
	}
	response := make([]byte, 8)
	_ = control.SetDeadline(time.Now().Add(idleTimeout))
	if _, err := io.ReadFull(control, response); err != nil {
		return r, fmt.Errorf("measure datagrams: %w", err)
	}
	r.Received = int64(binary.BigEndian.Uint64(response))
	return r, nil
}

// send sends datagrams at the given rate.
func send(ctx context.Context, dial Dial, token []byte, duration time.Duration, rate float64) (r Datagrams, err error) {
	conn, err := dial("udp")
	if err != nil {
		return r, err
	}
	defer conn.Close()
	datagram := append(bytes.Clone(token), make([]byte, datagramBytes-tokenBytes)...)
	interval := time.Duration(datagramBytes * 8 / rate * float64(time.Second))
	for start := time.Now(); ; {
		if r.Duration = time.Since(start); r.Duration >= duration {
			return r, nil
		}
		if ahead := time.Duration(r.Sent)*interval - r.Duration; ahead > batchPeriod {
			if err := pause(ctx, min(ahead, duration-r.Duration)); err != nil {
				return r, err
			}
			continue
		}
		// A datagram is lost if the device's queue is full or the server's host rejects it.
		_, err := conn.Write(datagram)
		if err != nil && !errors.Is(err, syscall.ENOBUFS) && !errors.Is(err, syscall.ECONNREFUSED) {
			return r, err
		}
		r.Sent++
	}
}

// pause waits for the given duration, or until ctx is done.
func pause(ctx context.Context, duration time.Duration) error {
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
