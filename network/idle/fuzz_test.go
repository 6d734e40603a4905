package idle

import (
	"slices"
	"testing"
)

// FuzzDatagram verifies that parsing a packet from a pod does not read beyond the end of the
// packet.
func FuzzDatagram(f *testing.F) {
	header := []byte{0x45, 0, 0, 32, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 1, 0, 2, 172, 30, 0, 1}
	f.Add(append(header, 0x30, 0x39, 0, 53, 0, 12, 0, 0, 'a', 'b', 'c', 'd'))
	f.Add(append(header, 0x30, 0x39, 0, 53, 0xff, 0xff, 0, 0))
	f.Add(append([]byte{0x4f}, header[1:]...))
	header6 := slices.Concat([]byte{0x60, 0, 0, 0, 0, 12, 17, 64}, make([]byte, 32))
	f.Add(append(slices.Clone(header6), 0x30, 0x39, 0, 53, 0, 12, 0, 0, 'a', 'b', 'c', 'd'))
	header6[6] = 60
	f.Add(append(slices.Clone(header6), 17, 0, 1, 4, 0, 0, 0, 0, 0x30, 0x39, 0, 53, 0, 8, 0, 0))
	f.Add(append(header6, 60, 0xff, 1, 4, 0, 0, 0, 0))
	f.Fuzz(func(t *testing.T, packet []byte) {
		d, ok := parse(packet)
		if ok && (len(d.payload) > len(packet) || d.client.Addr().Is4() != d.service.Addr().Is4() || !d.client.Addr().IsValid()) {
			t.Errorf("%x: got %+v", packet, d)
		}
	})
}
