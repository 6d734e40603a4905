package vxlan

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/slipway-platform/slipway/internal/networkplugin"
	"github.com/slipway-platform/slipway/internal/usermode"
	"github.com/slipway-platform/slipway/network/cni"
	"github.com/slipway-platform/slipway/network/internal/hosttest"
)

// podHost is a host with a pod that has its own network namespace.
type podHost struct {
	*host
	namespace hosttest.Namespace
	// podAddress is the pod's address.
	podAddress netip.Addr
}

const podDevice = "pod0"

// newPodHosts returns two hosts with one pod each. The pods echo the data that they receive on port
// 80. The hosts' rules drop all TCP packets that pass the forward hook of the network stack.
func newPodHosts(t *testing.T) (one, two podHost) {
	t.Helper()
	first, second := newHosts(t)
	for _, h := range []*host{first, second} {
		h.networks.Plugin = networkplugin.NetworkPolicy
		h.refresh()
	}
	one, two = newPodHost(t, first), newPodHost(t, second)
	for _, h := range []podHost{one, two} {
		h.connect(AllRights)
	}
	return one, two
}

// newSegmentHosts returns two hosts with one pod each, like newPodHosts. The hosts share a network
// segment, and have no VXLAN device.
func newSegmentHosts(t *testing.T) (one, two podHost) {
	t.Helper()
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644); err != nil {
		t.Fatal(err)
	}
	hosttest.Run(t, "ip link add segment type bridge && ip link set segment up")
	t.Cleanup(func() { hosttest.Run(t, "ip link delete segment") })
	hosts := []*host{newHost(t, "one", 1), newHost(t, "two", 2)}
	for i, h := range hosts {
		hosttest.Run(t, fmt.Sprintf("ip link add segment%d type veth peer name segment netns %s && ip link set segment%[1]d master segment up", i, h.Name))
		// The kernel deletes the devices of a deleted namespace with a delay.
		t.Cleanup(func() { hosttest.Run(t, fmt.Sprintf("ip link delete segment%d", i)) })
		h.run("ip", "address", "add", segmentAddress(i).String()+"/24", "dev", "segment")
		h.run("ip", "link", "set", "segment", "up")
	}
	for i, h := range hosts {
		h.absent, h.networks.Plugin = true, networkplugin.NetworkPolicy
		h.peers[hosts[1-i].subnet] = Peer{Address: segmentAddress(1 - i), Routed: true, Device: h.index("segment")}
		h.ensure()
	}
	one, two = newPodHost(t, hosts[0]), newPodHost(t, hosts[1])
	for _, h := range []podHost{one, two} {
		h.connect(AllRights)
	}
	return one, two
}

// segmentAddress returns a host's address on the segment.
func segmentAddress(number int) netip.Addr {
	return netip.AddrFrom4([4]byte{198, 51, 100, byte(number + 1)})
}

// index returns the index of a device.
func (h *host) index(device string) (index int) {
	h.t.Helper()
	h.Do(h.t, func() error {
		link, err := net.InterfaceByName(device)
		if err == nil {
			index = link.Index
		}
		return err
	})
	return index
}

// onEachPath runs a test with hosts that exchange packets through VXLAN, and with hosts that share
// a network segment.
func onEachPath(t *testing.T, test func(t *testing.T, one, two podHost)) {
	t.Helper()
	for name, newHosts := range map[string]func(*testing.T) (one, two podHost){"VXLAN": newPodHosts, "segment": newSegmentHosts} {
		t.Run(name, func(t *testing.T) {
			one, two := newHosts(t)
			test(t, one, two)
		})
	}
}

func newPodHost(t *testing.T, h *host) podHost {
	t.Helper()
	p := podHost{h, hosttest.NewNamespace(t, h.Name+"-pod"), h.pod("web")}
	h.run("ip", "address", "del", p.podAddress.String()+"/24", "dev", "pods")
	h.run("ip", "link", "set", "pods", "address", cni.HardwareAddress(gateway(h.subnet)).String())
	h.run("ip", "link", "add", podDevice, "type", "veth", "peer", "name", "eth0", "netns", p.namespace.Name)
	h.run("ip", "link", "set", podDevice, "master", "pods", "up")
	h.run("ip", "neighbor", "replace", p.podAddress.String(), "lladdr", cni.HardwareAddress(p.podAddress).String(), "dev", "pods", "nud", "permanent")
	p.inPod("ip", "link", "set", "lo", "up")
	p.inPod("ip", "link", "set", "eth0", "address", cni.HardwareAddress(p.podAddress).String())
	p.inPod("ip", "address", "add", p.podAddress.String()+"/32", "dev", "eth0")
	p.inPod("ip", "link", "set", "eth0", "up")
	p.inPod("ip", "route", "add", gateway(h.subnet).String(), "dev", "eth0")
	p.inPod("ip", "route", "add", "default", "via", gateway(h.subnet).String())
	p.inPod("ip", "neighbor", "replace", gateway(h.subnet).String(), "lladdr", cni.HardwareAddress(gateway(h.subnet)).String(), "dev", "eth0", "nud", "permanent")
	if usermode.Inside() { // this kernel has no nftables for IPv4
		h.run("iptables-legacy", "-A", "FORWARD", "-p", "tcp", "-j", "DROP")
	} else {
		p.rules(stackRules)
	}
	p.namespace.Do(t, func() error {
		listener, err := net.Listen("tcp4", ":80")
		if err != nil {
			return err
		}
		t.Cleanup(func() { listener.Close() })
		go func() {
			for {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				go func() { _, _ = io.Copy(conn, conn); conn.Close() }()
			}
		}()
		return nil
	})
	return p
}

// stackRules drops and counts the TCP packets that pass the forward hook of the network stack.
const stackRules = "add chain ip test forward { type filter hook forward priority 0; meta l4proto tcp counter drop; }"

// rules replaces the host's rules.
func (p podHost) rules(lines ...string) {
	p.t.Helper()
	p.Do(p.t, func() error {
		command := exec.Command("nft", "-f", "-")
		command.Stdin = strings.NewReader("add table ip test\ndelete table ip test\nadd table ip test\n" + strings.Join(lines, "\n") + "\n")
		if output, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("nft: %w: %s", err, output)
		}
		return nil
	})
}

func (p podHost) inPod(command ...string) {
	p.t.Helper()
	p.namespace.Do(p.t, func() error {
		if output, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%v: %w: %s", command, err, output)
		}
		return nil
	})
}

// connect replaces the pod's rights.
func (p podHost) connect(rights Rights) {
	p.t.Helper()
	p.Do(p.t, func() error {
		return p.tunnel.Connect(map[netip.Addr]Local{p.podAddress: {Device: podDevice, Rights: rights}})
	})
}

// connections returns the number of recorded connections on the host.
func (p podHost) connections() (count int) {
	p.t.Helper()
	p.Do(p.t, func() error {
		return p.tunnel.programs.eachFlow(func(_, _ []byte) bool { count++; return false })
	})
	return count
}

// dial opens a connection from the pod.
func (p podHost) dial(to netip.Addr) (conn net.Conn, err error) {
	p.t.Helper()
	err = p.namespace.Try(func() error {
		conn, err = net.DialTimeout("tcp4", netip.AddrPortFrom(to, 80).String(), time.Second)
		return err
	})
	if err == nil {
		p.t.Cleanup(func() { conn.Close() })
	}
	return conn, err
}

// echoes reports whether the peer of a connection responds. It ignores responses to earlier calls.
func echoes(conn net.Conn) bool {
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	want := make([]byte, 8)
	binary.NativeEndian.PutUint64(want, uint64(time.Now().UnixNano()))
	_, err := conn.Write(want)
	for got := make([]byte, len(want)); err == nil; {
		if _, err = io.ReadFull(conn, got); bytes.Equal(got, want) {
			return true
		}
	}
	return false
}
