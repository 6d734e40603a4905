package vxlan

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"

	"github.com/slipway-platform/slipway/internal/networkplugin"
)

// FuzzFrames runs the programs in the kernel. It verifies that a packet leaves the node only if its
// destination is a pod on another host. It also verifies that no packet enters the node outside
// VXLAN.
func FuzzFrames(f *testing.F) {
	if err := rlimit.RemoveMemlock(); err != nil {
		f.Fatal(err)
	}
	p := newPrograms()
	if err := p.createMaps(p.specs()); err != nil {
		f.Fatal(err)
	}
	if err := p.loadPrograms(); err != nil {
		f.Fatal(err)
	}
	f.Cleanup(p.close)
	here, there := netip.MustParsePrefix("10.128.1.0/24"), netip.MustParsePrefix("10.128.2.0/24")
	here6, there6 := netip.MustParsePrefix("fd01:0:0:1::/64"), netip.MustParsePrefix("fd01:0:0:2::/64")
	peer := Peer{Address: netip.MustParseAddr("192.0.2.2"), Gateway: netip.MustParseAddr("10.128.2.1")}
	pod, pod6 := netip.MustParseAddr("10.128.1.2"), netip.MustParseAddr("fd01:0:0:1::2")
	tunnel := &Tunnel{
		device: Device{Subnet: here, SecondSubnet: here6, Pods: []netip.Prefix{netip.MustParsePrefix("10.128.0.0/14"), netip.MustParsePrefix("fd01::/48")}},
		source: func() (Networks, error) {
			return Networks{Plugin: networkplugin.Multitenant, Pods: map[netip.Addr]uint32{pod: 12, pod6: 12}, Multicast: true}, nil
		},
	}
	p.localsOf, p.former = map[netip.Addr]attachedLocal{}, map[netip.Addr]bool{}
	for _, err := range []error{
		p.setPeers(map[netip.Prefix]Peer{there: peer, there6: peer}), tunnel.refresh(p),
		p.putLocal(pod, attachedLocal{Local{Rights: AllRights}, 1}),
	} {
		if err != nil {
			f.Fatal(err)
		}
	}
	for _, seed := range []struct {
		protocol uint16
		from, to netip.Addr
	}{
		{unix.ETH_P_IP, pod, netip.MustParseAddr("10.128.2.2")}, {unix.ETH_P_IP, pod, netip.MustParseAddr("203.0.113.1")}, {unix.ETH_P_IP, pod, netip.MustParseAddr("239.1.1.1")},
		{unix.ETH_P_IPV6, pod6, netip.MustParseAddr("fd01:0:0:2::2")}, {unix.ETH_P_IPV6, pod6, netip.MustParseAddr("ff02::16")}, {unix.ETH_P_ARP, pod, netip.MustParseAddr("10.128.2.1")},
	} {
		f.Add(frame(seed.protocol, seed.from, seed.to))
	}
	f.Fuzz(func(t *testing.T, packet []byte) {
		if len(packet) < 14 || len(packet) > 2000 {
			return // the kernel runs programs only with complete headers
		}
		for name, program := range map[string]*ebpf.Program{"egress": p.egress, "ingress": p.ingress, "pod": p.pod} {
			verdict, _, err := program.Test(bytes.Clone(packet))
			switch {
			case err != nil: // the kernel does not accept the frame
			case name == "egress" && verdict == verdictPass && !there.Contains(target(packet)) && !there6.Contains(target(packet)):
				t.Errorf("a packet to %s leaves the node: %x", target(packet), packet)
			case name == "ingress" && verdict != verdictDrop:
				t.Errorf("a packet without a network ID enters the node: %x", packet)
			}
		}
	})
}

// frame returns a frame with a TCP segment that opens a connection, or an ARP request.
func frame(protocol uint16, from, to netip.Addr) []byte {
	data := []byte{0x0a, 0x58, 10, 128, 1, 1, 0x0a, 0x58, 10, 128, 1, 2}
	data = binary.BigEndian.AppendUint16(data, protocol)
	switch protocol {
	case unix.ETH_P_IP:
		data = append(data, 0x45, 0, 0, 40, 0, 0, 0, 0, 64, unix.IPPROTO_TCP, 0, 0)
		data = append(append(data, from.AsSlice()...), to.AsSlice()...)
	case unix.ETH_P_IPV6:
		data = append(data, 0x60, 0, 0, 0, 0, 20, unix.IPPROTO_TCP, 64)
		data = append(append(data, from.AsSlice()...), to.AsSlice()...)
	default:
		data = append(data, 0, 1, 8, 0, 6, 4, 0, 1, 0x0a, 0x58, 10, 128, 1, 2)
		data = append(append(data, from.AsSlice()...), 0, 0, 0, 0, 0, 0)
		data = append(data, to.AsSlice()...)
	}
	return append(data, 0x80, 0, 0, 80, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, flagSYN, 0, 0, 0, 0, 0, 0)
}

// target returns the destination of a frame, or an invalid address.
func target(packet []byte) (address netip.Addr) {
	at, size := ipv4Target, 4
	switch binary.BigEndian.Uint16(packet[12:]) {
	case unix.ETH_P_IPV6:
		at, size = ipv6Target, addressSize
	case unix.ETH_P_ARP:
		at = arpTarget
	}
	if len(packet) >= at+size {
		address, _ = netip.AddrFromSlice(packet[at : at+size])
	}
	return address
}

// FuzzRecords verifies that a process can take over arbitrary entries in another version's maps,
// and never gains rights that the entries do not contain.
func FuzzRecords(f *testing.F) {
	if err := rlimit.RemoveMemlock(); err != nil {
		f.Fatal(err)
	}
	f.Add(uint32(0x0200800a), []byte{7, 0, 0, 0, 63, 0, 0, 0, 1, 2, 3, 4}, []byte("key of a flow"), []byte{1, 8, 0, 0, 9, 0, 0, 0})
	f.Add(uint32(0), []byte{1}, []byte{}, []byte{255, 255, 255, 255, 255, 255, 255, 255, 1})
	f.Fuzz(func(t *testing.T, address uint32, local, key, flow []byte) {
		if len(local) == 0 || len(flow) == 0 || len(local) > 64 || len(flow) > 64 {
			return
		}
		former, own := newPrograms(), newPrograms()
		defer former.close()
		defer own.close()
		specs := former.specs()
		for i := range specs {
			switch specs[i].target {
			case &former.locals:
				specs[i].spec.ValueSize = uint32(len(local))
			case &former.flows:
				specs[i].spec.ValueSize = uint32(len(flow))
			}
		}
		ownFlow := make([]byte, flowSize)
		copy(ownFlow, key)
		for _, err := range []error{former.createMaps(specs), own.createMaps(own.specs()), former.locals.Put(address, local), former.flows.Put(ownFlow, flow)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		own.localsOf = map[netip.Addr]attachedLocal{}
		if err := copyMap(own.locals, former.locals); err != nil {
			t.Fatal(err)
		}
		if err := copyMap(own.flows, former.flows); err != nil {
			t.Fatal(err)
		}
		var got []byte
		if err := own.locals.Lookup(address, &got); err != nil {
			t.Fatal(err)
		}
		want := make([]byte, localSize)
		if copy(want, local); !bytes.Equal(got, want) {
			t.Errorf("the pod is %x, want %x", got, want)
		}
		count := 0
		err := own.eachFlow(func(_, value []byte) bool {
			count++
			return timeout(binary.NativeEndian.Uint32(value[flowState:])) > 0
		})
		if err != nil || count != 1 {
			t.Errorf("%d connections, %v", count, err)
		}
	})
}
