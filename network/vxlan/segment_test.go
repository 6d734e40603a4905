package vxlan

import (
	"strings"
	"testing"
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

func TestProgramsOfUnusedSegmentsAreRemoved(t *testing.T) {
	one, two := newSegmentHosts(t)
	programs := func() int {
		return strings.Count(one.run("tc", "filter", "show", "dev", "segment", "ingress"), "slipway") +
			strings.Count(one.run("tc", "filter", "show", "dev", "segment", "egress"), "slipway")
	}
	if got := programs(); got != 2 {
		t.Errorf("the device has %d programs, want 2", got)
	}
	one.run("tc", "filter", "add", "dev", "segment", "ingress", "protocol", "ip", "u32", "match", "ip", "protocol", "254", "0xff", "classid", "1:1")
	if conn, err := one.dial(two.podAddress); err != nil || !echoes(conn) {
		t.Errorf("direct connection behind another filter: %v", err)
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
	one.tunnel = &Tunnel{} // of a process that starts after the network has changed
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
}
