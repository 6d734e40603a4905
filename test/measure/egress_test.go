package measure

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/slipway-platform/slipway/test/kit"
)

const (
	// egressMoveAim is the target for moving an egress address away from a lost host.
	egressMoveAim = 5 * time.Second
	// egressMoves is the number of times that a host is lost, for each kind of address.
	egressMoves = 5
)

// departures sends numbered datagrams from a pod to a machine outside the cluster.
type departures struct {
	sender   net.Conn
	listener net.PacketConn
	number   uint64 // of the last datagram
}

// newDepartures returns departures from a pod on a host to the cluster's gateway.
func newDepartures(t *testing.T, c *kit.Cluster, pod string) *departures {
	t.Helper()
	listener, err := net.ListenPacket("udp4", netip.AddrPortFrom(c.Gateway, 0).String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	sender, err := openPod(t, c, pod).Dial(t.Context(), "udp4", listener.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sender.Close() })
	return &departures{sender: sender, listener: listener}
}

// until sends datagrams until one of them arrives with the given source address. It returns the
// time from the call to the arrival.
func (d *departures) until(ctx context.Context, source string) (time.Duration, error) {
	start, first := time.Now(), d.number+1
	buffer := make([]byte, 8)
	for ctx.Err() == nil {
		d.number++
		// Write fails while the project has no usable egress address.
		_, _ = d.sender.Write(binary.BigEndian.AppendUint64(nil, d.number))
		_ = d.listener.SetReadDeadline(time.Now().Add(datagramInterval))
		size, from, err := d.listener.ReadFrom(buffer)
		if err != nil || size < len(buffer) || binary.BigEndian.Uint64(buffer) < first {
			continue // no datagram arrived, or it was sent before the call
		}
		if host, _, _ := net.SplitHostPort(from.String()); host == source {
			return time.Since(start), nil
		}
	}
	return 0, fmt.Errorf("wait for a datagram with the source address %s: %w", source, ctx.Err())
}

// arrivalTimeout is the timeout for a datagram with the expected egress address.
const arrivalTimeout = 2 * time.Minute

// mustArrive waits until a datagram arrives with the given source address.
func (d *departures) mustArrive(t *testing.T, source string) time.Duration {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), arrivalTimeout)
	defer cancel()
	duration, err := d.until(ctx, source)
	if err != nil {
		t.Fatal(err)
	}
	return duration
}

// moveEgressAddress disconnects the second host, which has the egress address of a project on the
// first host. It measures how long the project cannot send datagrams outside the cluster. Then,
// either the first host has another static address of the project, or it takes over the automatic
// address.
func moveEgressAddress(t *testing.T, r *table, c *kit.Cluster, second *kit.Host) {
	t.Helper()
	d := newDepartures(t, c, "client")
	// lose disconnects the second host until datagrams arrive from source again.
	lose := func(source string) time.Duration {
		t.Helper()
		if err := second.SetConnected(false); err != nil {
			t.Fatal(err)
		}
		duration := d.mustArrive(t, source)
		if err := second.SetConnected(true); err != nil {
			t.Fatal(err)
		}
		return duration
	}

	one, two := c.InSegment(201), c.InSegment(202)
	c.SetEgress("hostsubnet", "second", "egressIPs", one)
	c.SetEgress("hostsubnet", "first", "egressIPs", two)
	c.SetEgress("netnamespace", "clients", "egressIPs", one, two)
	var static, automatic []time.Duration
	for range egressMoves {
		d.mustArrive(t, one)
		static = append(static, lose(two))
	}
	c.SetEgress("hostsubnet", "second", "egressIPs")
	c.SetEgress("hostsubnet", "first", "egressIPs")

	c.SetEgress("netnamespace", "clients", "egressIPs", one)
	for range egressMoves {
		c.SetEgress("hostsubnet", "first", "egressCIDRs")
		c.SetEgress("hostsubnet", "second", "egressCIDRs", one+"/32")
		waitReady(c, "second")
		c.WaitFor("egress address at the second host", func(context.Context) error {
			if list := c.OC("get", "hostsubnet", "second", "-o", "jsonpath={.egressIPs}"); !strings.Contains(list, one) {
				return fmt.Errorf("the addresses are %s", list)
			}
			return nil
		})
		d.mustArrive(t, one)
		c.SetEgress("hostsubnet", "first", "egressCIDRs", one+"/32")
		automatic = append(automatic, lose(one))
	}
	for _, host := range []string{"first", "second"} {
		c.SetEgress("hostsubnet", host, "egressCIDRs")
	}
	c.SetEgress("netnamespace", "clients", "egressIPs")
	waitReady(c, "second")
	d.mustArrive(t, c.Address.String())
	r.aim(fmt.Sprintf("egress IP of a lost host, static: first datagram with the next one, longest of %d", egressMoves), percentile(static, 100), egressMoveAim)
	r.aim(fmt.Sprintf("egress IP of a lost host, automatic: first datagram through another host, longest of %d", egressMoves), percentile(automatic, 100), egressMoveAim)
}
