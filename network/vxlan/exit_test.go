package vxlan

import (
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/slipway-platform/slipway/internal/eventually"
	"github.com/slipway-platform/slipway/internal/networkplugin"
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

// TestResponsesOfMachinesHaveNoAddressOfPods sends packets from a host that has egress addresses,
// and therefore forwards responses from other machines.
func TestResponsesOfMachinesHaveNoAddressOfPods(t *testing.T) {
	one, two := newHosts(t)
	machine := newHost(t, "machine", 3)
	two.networks.Plugin, two.networks.Owners = networkplugin.Subnet, []netip.Addr{one.address}
	two.refresh()
	listener := two.listen()
	for source, arrives := range map[netip.Addr]bool{
		machine.address: true, netip.MustParseAddr("10.128.9.2"): false, netip.MustParseAddr("10.64.0.2"): false,
	} {
		forgery{one, 0, source, two.pod("web"), 0x0800}.send(t, two, source.String())
		forgery{one, 0, one.pod("admin"), two.pod("admin"), 0x0800}.send(t, two, "end")
		got := listener.next()
		if (got == source.String()) != arrives {
			t.Errorf("packet from %s: %q arrives, want %t", source, got, arrives)
		}
		if got != "end" {
			listener.next()
		}
	}
}
