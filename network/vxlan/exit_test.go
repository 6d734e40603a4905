package vxlan

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/slipway-platform/slipway/internal/eventually"
	"github.com/slipway-platform/slipway/internal/networkplugin"
	"github.com/slipway-platform/slipway/network/ipfamily"
)

// TestPacketsLeaveAtTheHostWithTheAddress sends packets from a pod on one host through another host
// to a machine outside the cluster. A routing rule for the packets' mark leads to the device.
func TestPacketsLeaveAtTheHostWithTheAddress(t *testing.T) {
	one, two := newHosts(t)
	leave(t, one, two, ipfamily.IPv4, one.pod("web"), netip.MustParseAddr("203.0.113.1"))
}

func TestIPv6PacketsLeaveAtTheHostWithTheAddress(t *testing.T) {
	one, two := newHosts(t)
	one.enableIPv6(two)
	two.enableIPv6(one)
	leave(t, one, two, ipfamily.IPv6, one.second("web"), netip.MustParseAddr("2001:db8::1"))
}

func leave(t *testing.T, one, two *host, family ipfamily.Family, pod, machine netip.Addr) {
	t.Helper()
	one.networks.Exits = map[netip.Addr]Exit{pod: {Host: two.address, VNI: 12}}
	two.networks.Gates = map[uint32]uint32{12: 0x2000000c}
	option := [...]string{"-4", "-6"}[family]
	one.run("ip", option, "route", "add", "default", "via", NextHop(family).String(), "dev", device, "onlink", "table", "83")
	one.run("ip", option, "rule", "add", "fwmark", "0x10000000/0x70000000", "lookup", "83")
	two.run("sysctl", "-w", "net.ipv4.ip_forward=1")
	if family == ipfamily.IPv6 {
		two.run("ip", "-6", "route", "add", "default", "dev", "eth0") // IPv4 already has this route
	}
	two.run("nft", fmt.Sprintf(`table %[1]s test {
		counter arrivals {}
		chain forward { type filter hook forward priority 0;
			%[1]s saddr %[2]s %[1]s daddr %[3]s meta mark 0x2000000c counter name arrivals drop
		}
	}`, family.Header(), pod, machine))
	send := func() {
		dialer := net.Dialer{LocalAddr: &net.UDPAddr{IP: pod.AsSlice()}, Control: func(_, _ string, conn syscall.RawConn) (err error) {
			_ = conn.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_MARK, 0x10000000) })
			return err
		}}
		one.Do(t, func() error {
			conn, err := dialer.Dial("udp", netip.AddrPortFrom(machine, 80).String())
			if err == nil {
				defer conn.Close()
				_, err = conn.Write([]byte("x"))
			}
			return err
		})
	}
	arrived := func() bool {
		send()
		return !strings.Contains(two.run("nft", "list", "counters"), "packets 0 ")
	}
	send()
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
