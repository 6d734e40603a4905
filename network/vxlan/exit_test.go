package vxlan

import (
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/slipway-platform/slipway/internal/eventually"
)

// TestPacketsLeaveAtTheHostWithTheAddress sends packets from a pod on one host through another host
// to a machine outside of the cluster. A routing rule for the packets' mark leads to the device.
func TestPacketsLeaveAtTheHostWithTheAddress(t *testing.T) {
	one, two := newHosts(t)
	one.networks.Exits = map[netip.Addr]Exit{one.pod("web"): {Host: two.address, VNI: 12}}
	two.networks.Gates = map[uint32]uint32{12: 0x2000000c}
	one.run("ip", "route", "add", "default", "via", NextHop().String(), "dev", device, "onlink", "table", "83")
	one.run("ip", "rule", "add", "fwmark", "0x10000000/0x70000000", "lookup", "83")
	two.run("sysctl", "-w", "net.ipv4.ip_forward=1")
	two.run("nft", `table ip test {
		counter arrivals {}
		chain forward { type filter hook forward priority 0;
			ip saddr `+one.pod("web").String()+` ip daddr 203.0.113.1 meta mark 0x2000000c counter name arrivals drop
		}
	}`)
	send := func(pod string) {
		dialer := net.Dialer{LocalAddr: &net.UDPAddr{IP: one.pod(pod).AsSlice()}, Control: func(_, _ string, conn syscall.RawConn) (err error) {
			_ = conn.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_MARK, 0x10000000) })
			return err
		}}
		one.Do(t, func() error {
			conn, err := dialer.Dial("udp4", "203.0.113.1:80")
			if err == nil {
				defer conn.Close()
				_, err = conn.Write([]byte("x"))
			}
			return err
		})
	}
	arrived := func() bool {
		send("web")
		return !strings.Contains(two.run("nft", "list", "counters"), "packets 0 ")
	}
	send("web")
	if strings.Contains(two.run("nft", "list", "counters"), "packets 1 ") {
		t.Error("a packet of a project without an address leaves the cluster")
	}
	one.refresh()
	two.refresh()
	eventually.True(t, "a packet at the host with the address", arrived)
	two.networks.Gates = nil
	two.refresh()
	two.run("nft", "reset", "counters")
	for range 10 {
		if arrived() {
			t.Fatal("a packet leaves at a host without the address")
		}
	}
}
