package multitenant

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

const (
	// bandwidth is a pod's limit in each direction, in bits per second.
	bandwidth = 16_000_000
	// tolerance is the share of a limit by which the measured bandwidth may differ from the limit.
	tolerance = 0.05
	// burst is the maximum period for which a pod can save up unused bandwidth.
	burst = 50 * time.Millisecond
	// bandwidthPeriod is the period over which a pod's bytes are counted.
	bandwidthPeriod = time.Second
	// floodSize is the payload size of datagrams. A VXLAN-encapsulated frame has enough space for
	// the datagram.
	floodSize = 1200
)

// limited is the name of the pod with limits, which is on the second host.
const limited = "limited"

// createLimited creates the pod with limits.
func (s tenants) createLimited(t *testing.T) {
	t.Helper()
	limits := fmt.Sprintf("  annotations: {kubernetes.io/ingress-bandwidth: %[1]q, kubernetes.io/egress-bandwidth: %[1]q}\n  labels:", fmt.Sprint(bandwidth))
	s.blue.Apply(strings.Replace(s.blue.server(limited, second), "  labels:", limits, 1))
	s.blue.WaitPodRunning(limited)
	s.blue.networks[limited] = s.blue.findNetwork(t, limited)
}

// flood sends datagrams, or data over a TCP connection, at twice the limit until the test ends. It
// returns both ends' sockets.
func flood(t *testing.T, network string, from, to end) (sender net.Conn, receiver any) {
	t.Helper()
	accept, address, stop, err := listenFor(network, to)
	if err != nil {
		t.Fatal(err)
	}
	var conn net.Conn
	err = from.run(func() (err error) {
		conn, err = net.DialTimeout(network, address, 5*requestTimeout)
		return err
	})
	if err != nil {
		stop()
		t.Fatal(err)
	}
	socket, err := accept()
	if err != nil {
		t.Fatal(err)
	}
	var tasks sync.WaitGroup
	tasks.Go(func() {
		const interval = 5 * time.Millisecond
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for buffer := make([]byte, floodSize); ; <-ticker.C {
			for range 2 * bandwidth / 8 / floodSize / int(time.Second/interval) {
				if _, err := conn.Write(buffer); err != nil && network == "tcp4" {
					return
				}
			}
			if t.Context().Err() != nil {
				return
			}
		}
	})
	tasks.Go(func() {
		if received, isConn := socket.(net.Conn); isConn && network == "tcp4" {
			_, _ = io.Copy(io.Discard, received) // discard data until the connection is closed
			return
		}
		for buffer := make([]byte, floodSize); ; {
			if _, _, err := socket.(net.PacketConn).ReadFrom(buffer); err != nil {
				return
			}
		}
	})
	t.Cleanup(func() {
		conn.Close()
		socket.(io.Closer).Close()
		stop()
		tasks.Wait()
	})
	return conn, socket
}

// frames returns the total size, in bytes, of the frames that TCP connections have received. It is
// needed because the pod's device counts the headers of a large segment only once. Bytes that
// arrive out of order are included only when the missing bytes have arrived.
func frames(sockets []any) (bytes uint64, err error) {
	const headers = 14 + 20 + 32 // Ethernet, IPv4, and TCP with timestamps
	for _, socket := range sockets {
		raw, err := socket.(*net.TCPConn).SyscallConn()
		if err != nil {
			return 0, err
		}
		var info *unix.TCPInfo
		var infoErr error
		err = raw.Control(func(fd uintptr) { info, infoErr = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO) })
		if err := errors.Join(err, infoErr); err != nil {
			return 0, err
		}
		bytes += info.Bytes_received + uint64(info.Segs_in)*headers
	}
	return bytes, nil
}

// received returns the number of bytes that a pod's device has received.
func (t tenant) received(pod string) (bytes uint64, err error) {
	err = t.inPod(pod, func() error {
		link, err := netlink.LinkByName("eth0")
		if err == nil {
			bytes = link.Attrs().Statistics.RxBytes
		}
		return err
	})
	return bytes, err
}

// hold waits until every receiver gets the bandwidth that the limit allows. No receiver may ever
// exceed the limit. receivers contains the TCP connections of each receiver, or nil for datagrams.
func (s tenants) hold(t *testing.T, name string, limit float64, receivers map[string][]any) {
	t.Helper()
	// count returns two numbers of bytes. The first, from the device, is at most the actual number.
	// The second is the size of the received frames.
	count := func(receiver string) (bytes [2]uint64, err error) {
		if bytes[0], err = s.blue.received(receiver); err != nil || receivers[receiver] == nil {
			return [2]uint64{bytes[0], bytes[0]}, err
		}
		bytes[1], err = frames(receivers[receiver])
		return bytes, err
	}
	s.WaitFor("bandwidth "+name, func(context.Context) error {
		start, before := time.Now(), map[string][2]uint64{}
		for receiver := range receivers {
			bytes, err := count(receiver)
			if err != nil {
				return err
			}
			before[receiver] = bytes
		}
		<-time.After(bandwidthPeriod)
		var short error
		for receiver := range receivers {
			bytes, err := count(receiver)
			if err != nil {
				return err
			}
			elapsed := time.Since(start).Seconds() // at least the time between the two counts
			if bits := float64(bytes[0]-before[receiver][0]) * 8; bits > limit*((1+tolerance)*elapsed+burst.Seconds()) {
				t.Errorf("%s: pod %s receives %.3f of the limit in %.1f s", name, receiver, bits/elapsed/limit, elapsed)
			}
			share := float64(bytes[1]-before[receiver][1]) * 8 / elapsed / limit
			if share < 1-tolerance {
				short = errors.Join(short, fmt.Errorf("pod %s receives %.3f of the limit", receiver, share))
			}
			t.Logf("%s: pod %s receives %.3f of the limit", name, receiver, share)
		}
		return short
	})
}

// TestBandwidthIsLimitedOnEveryPath measures the traffic between a pod with limits and other pods,
// in both directions. The other pods are on the same host, on a host in the same network segment,
// and on a distant host.
func TestBandwidthIsLimitedOnEveryPath(t *testing.T) {
	s := sharedTenants(t)
	s.createLimited(t)
	for peer, place := range map[string]string{"far": "on its own host", "near": "on the same segment", distant: "in VXLAN"} {
		for _, network := range []string{"udp4", "tcp4"} {
			t.Run(network+" "+place, func(t *testing.T) {
				in, inReceiver := flood(t, network, s.blue.end(peer), s.blue.end(limited))
				out, outReceiver := flood(t, network, s.blue.end(limited), s.blue.end(peer))
				receivers := map[string][]any{limited: nil, peer: nil}
				if network == "tcp4" {
					receivers = map[string][]any{limited: {inReceiver, out}, peer: {outReceiver, in}}
				}
				s.hold(t, network+" "+place, bandwidth, receivers)
			})
		}
	}
	flood(t, "udp4", s.blue.end("near"), s.blue.end(limited))
	receiver := map[string][]any{limited: nil}
	s.hold(t, "before the limit changes", bandwidth, receiver)
	s.OC("annotate", "pod", limited, fmt.Sprintf("kubernetes.io/ingress-bandwidth=%d", bandwidth*3/2), "--overwrite")
	s.hold(t, "after the limit has changed", bandwidth*3/2, receiver)
}
