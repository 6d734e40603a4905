package cni

import (
	"fmt"
	"math"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/slipway-platform/slipway/internal/eventually"
	"github.com/slipway-platform/slipway/network/internal/hosttest"
	"github.com/slipway-platform/slipway/network/shaping"
)

func limited(ingress, egress uint64) func(*Config) {
	return func(c *Config) { c.RuntimeConfig.Bandwidth = bandwidth{ingress, egress} }
}

// flow is a sender that never stops, and a receiver of its datagrams.
type flow struct {
	*bench
	bytes atomic.Int64 // number of bytes received, including frame headers
}

// flow sends datagrams to an address in another namespace, at about twice the given rate, in bits
// per second.
func (b *bench) flow(from, to hosttest.Namespace, address string, bits int) *flow {
	b.Helper()
	const payload, headers = 1400, 14 + 20 + 8
	f := &flow{bench: b}
	to.Do(b.T, func() error {
		server, err := net.ListenPacket("udp4", address+":9")
		if err != nil {
			return err
		}
		b.Cleanup(func() { server.Close() })
		go func() {
			buffer := make([]byte, payload)
			for {
				n, _, err := server.ReadFrom(buffer)
				if err != nil {
					return
				}
				f.bytes.Add(int64(n + headers))
			}
		}()
		return nil
	})
	from.Do(b.T, func() error {
		client, err := net.Dial("udp4", address+":9")
		if err != nil {
			return err
		}
		ticker := time.NewTicker(2 * time.Millisecond)
		b.Cleanup(func() { ticker.Stop(); client.Close() })
		go func() {
			start, datagram := time.Now(), make([]byte, payload)
			for sent := 0.0; ; {
				<-ticker.C
				for due := 2 * float64(bits) / 8 * time.Since(start).Seconds(); sent < due; sent += payload + headers {
					if _, err := client.Write(datagram); err != nil && strings.Contains(err.Error(), "closed") {
						return
					}
				}
			}
		}()
		return nil
	})
	return f
}

// checkRate checks that the rate at which the receiver receives data is within 5 % of the given
// rate. It retries, because a machine that is too busy to send reduces the rate.
func (f *flow) checkRate(description string, bits int) {
	f.between(description, 0.95*float64(bits), 1.05*float64(bits))
}

// between checks that the receiver's rate is within bounds. Each measurement lasts until the
// receiver has received as much data as it would receive in one second at the lower bound.
func (f *flow) between(description string, low, high float64) {
	f.Helper()
	eventually.True(f.T, description+": the bucket is empty", func() bool { return f.bytes.Load() > 1<<18 })
	start, before := time.Now(), f.bytes.Load()
	eventually.True(f.T, fmt.Sprintf("%s: rate of %.0f to %.0f bits per second", description, low, high), func() bool {
		now := f.bytes.Load()
		if float64(now-before) < low/8 {
			return false
		}
		got := float64(now-before) * 8 / time.Since(start).Seconds()
		f.Logf("%s: %.0f bits per second", description, got)
		start, before = time.Now(), now
		return got > low && got < high
	})
}

func TestBandwidthOfPodIsLimited(t *testing.T) {
	b := newBench(t)
	pod, address := b.pod("one", limited(10_000_000, 4_000_000))
	b.flow(hosttest.Host(), pod, address, 10_000_000).checkRate("to the pod", 10_000_000)
	b.flow(pod, hosttest.Host(), "10.128.2.1", 4_000_000).checkRate("from the pod", 4_000_000)
	// Limiting one pod does not limit other pods. The limited pod's connections remain open.
	if got, err := shaping.Read(deviceName("one", "eth0")); err != nil || got != (shaping.Limits{Ingress: 10_000_000, Egress: 4_000_000}) {
		t.Errorf("limits %+v, error %v", got, err)
	}
	two, twoAddress := b.pod("two", nil)
	if got, err := shaping.Read(deviceName("two", "eth0")); err != nil || got != (shaping.Limits{}) {
		t.Errorf("limits of another pod: %+v, error %v", got, err)
	}
	b.flow(hosttest.Host(), two, twoAddress, 20_000_000).between("to another pod", 15_000_000, math.Inf(1))
}

func TestBandwidthLimitsEndWithPod(t *testing.T) {
	b := newBench(t)
	removed, lost, other := hosttest.NewNamespace(t, "removed"), hosttest.NewNamespace(t, "lost"), hosttest.NewNamespace(t, "other")
	for _, pod := range []hosttest.Namespace{removed, lost, other} {
		b.add(pod, limited(1_000_000, 1_000_000))
	}
	queues := func() (count int) {
		links, err := netlink.LinkList()
		b.must(err)
		for _, link := range links {
			if link.Type() == "ifb" {
				count++
			}
		}
		return count
	}
	if got := queues(); got != 3 {
		t.Fatalf("got %d queues, want 3", got)
	}
	_, err := b.plugin("DEL", removed, nil)
	b.must(err)
	if got := queues(); got != 2 {
		t.Errorf("after DEL: got %d queues, want 2", got)
	}
	lost.Delete()
	eventually.True(t, "kernel deletes the device of the lost pod", func() bool { return !deviceExists(deviceName("lost", "eth0")) })
	b.reconcile()
	if got := queues(); got != 1 {
		t.Errorf("after Reconcile: got %d queues, want 1", got)
	}
	if got, err := shaping.Read(deviceName("other", "eth0")); err != nil || got.Egress != 1_000_000 {
		t.Errorf("limits of the remaining pod: %+v, error %v", got, err)
	}
}

// TestLimitedPodCannotForgeFrames verifies that frames that are redirected to the queue do not
// bypass the source address check.
func TestLimitedPodCannotForgeFrames(t *testing.T) {
	s := newSpoofing(t)
	bridge, err := netlink.LinkByName(s.config.Bridge)
	s.must(err)
	config := s.config
	limited(0, 100_000_000)(&config)
	s.must(config.limit(lease{Device: deviceName("mallory", "eth0"), Address: s.malloryAddress}, bridge))
	if pod, host := s.attack(s.frames()); len(pod)+len(host) > 0 {
		t.Errorf("the pod gets %q, the host gets %q", pod, host)
	}
	s.checkTables()
	queue, err := netlink.LinkByName("ifb" + strings.TrimPrefix(deviceName("mallory", "eth0"), devicePrefix))
	s.must(err)
	if queue.Attrs().Statistics.TxPackets == 0 {
		t.Error("the honest packet was not redirected to the queue: the test proves nothing")
	}
	s.checkResponse(s.mallory, "udp4", netip.AddrPortFrom(s.aliceAddress, 80).String(), "alice "+s.malloryAddress.String())
}
