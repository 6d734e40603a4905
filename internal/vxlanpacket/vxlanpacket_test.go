package vxlanpacket

import (
	"bytes"
	"net"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseReadsWhatEncodeWrites(t *testing.T) {
	packet := Packet{
		VNI: 0xabcdef, MAC: net.HardwareAddr{10, 88, 10, 128, 0, 1}, Port: 80, Payload: "hello",
		Source: netip.MustParseAddr("10.129.255.254"), Target: netip.MustParseAddr("10.128.0.2"),
	}
	// Ethernet, IPv4 and UDP headers, with port 4789.
	frame := append(make([]byte, 14), 0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2)
	frame = append(frame, 0x30, 0x39, 0x12, 0xb5, 0, 0, 0, 0)
	frame = append(frame, packet.Encode()...)
	got, ok := Parse(frame, 4789)
	if !ok {
		t.Fatal("the frame has no VXLAN")
	}
	want := packet
	want.Protocol, want.Port, want.Payload = 0x0800, 0, "\x00\x09\x00\x50\x00\x0d\x00\x00hello"
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
		t.Errorf("packet (-want +got):\n%s", diff)
	}
	if sum := checksum(packet.Encode()[22:42]); sum != 0 {
		t.Errorf("checksum of the header with its checksum: %x", sum)
	}
	for name, other := range map[string][]byte{"short": frame[:70], "empty": nil, "TCP": bytes.Replace(frame, []byte{64, 17}, []byte{64, 6}, 1)} {
		if _, ok := Parse(other, 4789); ok {
			t.Errorf("%s: the frame is VXLAN", name)
		}
	}
	if _, ok := Parse(frame, 4790); ok {
		t.Error("the frame is VXLAN at another port")
	}
}
