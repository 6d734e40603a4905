package vxlan

import (
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
)

// TestFramesOfOtherMachinesAreNotDelivered sends frames to the MAC address of another machine. The
// host receives them, because its device is in promiscuous mode.
func TestFramesOfOtherMachinesAreNotDelivered(t *testing.T) {
	one, two := newSegmentHosts(t)
	two.run("ip", "link", "set", "segment", "promisc", "on")
	one.run("ip", "neighbor", "replace", segmentAddress(1).String(), "lladdr", "0a:58:c6:33:64:63", "dev", "segment", "nud", "permanent")
	if _, err := one.dial(two.podAddress); err == nil {
		t.Error("a frame of another machine reaches a pod")
	}
}

// segmentPrograms returns the number of programs of the device on the network segment.
func (h *host) segmentPrograms() int {
	h.t.Helper()
	return strings.Count(h.run("tc", "filter", "show", "dev", "segment", "ingress"), "slipway") +
		strings.Count(h.run("tc", "filter", "show", "dev", "segment", "egress"), "slipway")
}

// TestSegmentsWithOtherFiltersAreNotUsed adds filters and programs that accept all packets, and a
// qdisc that has no hook for sent packets. The host drops packets of connections that its network
// stack does not track.
func TestSegmentsWithOtherFiltersAreNotUsed(t *testing.T) {
	one, two := newSegmentHosts(t)
	one.rules("add chain ip test forward { type filter hook forward priority 0; ct state invalid drop; }")
	for name, add := range map[string]func() (remove func()){
		"filter for received packets": func() func() { return one.acceptAll("ingress") },
		"filter for sent packets":     func() func() { return one.acceptAll("egress") },
		"tcx program":                 func() func() { return one.attachTCX("segment") },
		"only one hook": func() func() {
			one.run("tc", "qdisc", "del", "dev", "segment", "clsact")
			one.run("tc", "qdisc", "add", "dev", "segment", "ingress")
			return func() { one.run("tc", "qdisc", "del", "dev", "segment", "ingress") }
		},
	} {
		t.Run(name, func(t *testing.T) {
			remove := add()
			one.ensure()
			if got := one.segmentPrograms(); got != 0 {
				t.Errorf("the device has %d programs", got)
			}
			if conn, err := one.dial(two.podAddress); err != nil || !echoes(conn) {
				t.Errorf("connection: %v", err)
			}
			// The error is not logged again.
			one.Do(t, func() error { return one.tunnel.programs.setSegments(one.peers, 1450) })
			remove()
			one.ensure()
			if got := one.segmentPrograms(); got != 2 {
				t.Errorf("without the other filter, the device has %d programs, want 2", got)
			}
		})
	}
}

// acceptAll adds a filter that accepts all packets to a tc hook of the device on the segment.
func (h *host) acceptAll(hook string) (remove func()) {
	h.t.Helper()
	h.run("tc", "filter", "add", "dev", "segment", hook, "prio", "1", "protocol", "ip", "u32", "match", "u32", "0", "0", "classid", "1:1")
	return func() { h.run("tc", "filter", "del", "dev", "segment", hook, "prio", "1") }
}

// attachTCX attaches a program that accepts all packets to a device.
func (h *host) attachTCX(device string) (detach func()) {
	h.t.Helper()
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type: ebpf.SchedCLS, License: "Apache-2.0", Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
	})
	if err != nil {
		h.t.Fatal(err)
	}
	defer program.Close()
	var attachment link.Link
	h.Do(h.t, func() (err error) {
		attachment, err = link.AttachTCX(link.TCXOptions{Interface: h.index(device), Program: program, Attach: ebpf.AttachTCXIngress})
		return err
	})
	return func() { _ = attachment.Close() }
}

func TestProgramsOfUnusedSegmentsAreRemoved(t *testing.T) {
	one, two := newSegmentHosts(t)
	programs := one.segmentPrograms
	if got := programs(); got != 2 {
		t.Errorf("the device has %d programs, want 2", got)
	}
	one.run("tc", "filter", "add", "dev", "segment", "ingress", "prio", "53249", "protocol", "ip", "u32", "match", "ip", "protocol", "254", "0xff", "classid", "1:1")
	one.ensure()
	if conn, err := one.dial(two.podAddress); err != nil || !echoes(conn) {
		t.Errorf("direct connection before another filter: %v", err)
	}
	setMTU := func(mtu string) {
		one.run("ip", "link", "set", "segment", "mtu", mtu)
		one.ensure()
	}
	setMTU("1400")
	if got := programs(); got != 0 {
		t.Errorf("a device whose MTU is smaller than the pods' has %d programs", got)
	}
	setMTU("1500")
	segment := one.peers[two.subnet]
	one.peers[two.subnet] = Peer{Address: segment.Address, Routed: true}
	one.tunnel = &Tunnel{} // simulates a process that starts after the network has changed
	one.follow()
	one.Do(t, func() error {
		return one.tunnel.Ensure(Device{Name: device, Absent: true, Subnet: one.subnet}, one.peers)
	})
	if got := programs(); got != 0 {
		t.Errorf("the device has %d programs without hosts on its segment", got)
	}
	if !strings.Contains(one.run("tc", "filter", "show", "dev", "segment", "ingress"), "u32") {
		t.Error("the filter of the administrator is removed")
	}
	one.run("tc", "filter", "del", "dev", "segment", "ingress")
	one.peers[two.subnet] = segment
	one.ensure()
	one.Do(t, func() error { return one.tunnel.Remove(device) })
	if got := one.run("tc", "qdisc", "show", "dev", "segment"); strings.Contains(got, "clsact") {
		t.Errorf("without other filters, the device keeps the hooks: %s", got)
	}
	one.run("tc", "qdisc", "add", "dev", "segment", "clsact")
	setMTU("1400")
	if got := one.run("tc", "qdisc", "show", "dev", "segment"); !strings.Contains(got, "clsact") {
		t.Errorf("the hooks of the administrator are removed: %s", got)
	}
}
