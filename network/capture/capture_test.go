package capture

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/slipway-platform/slipway/network/internal/hosttest"
)

func TestMain(m *testing.M) { hosttest.Main(m) }

// ports returns the destination ports of the UDP packets in a capture.
func ports(t *testing.T, file io.Reader) (list []int) {
	t.Helper()
	for _, p := range packets(t, file) {
		list = append(list, p.port)
	}
	return list
}

// packet is a UDP packet in a capture.
type packet struct {
	device string
	port   int // destination port
}

// packets returns the UDP packets in a capture.
func packets(t *testing.T, file io.Reader) (list []packet) {
	t.Helper()
	reader, err := pcapgo.NewNgReader(file, pcapgo.DefaultNgReaderOptions)
	if err != nil {
		t.Fatal(err)
	}
	for {
		frame, info, err := reader.ReadPacketData()
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		device, err := reader.Interface(info.InterfaceIndex)
		if err != nil {
			t.Fatal(err)
		}
		decoded := gopacket.NewPacket(frame, layers.LayerTypeEthernet, gopacket.Default)
		if udp, ok := decoded.TransportLayer().(*layers.UDP); ok {
			list = append(list, packet{device.Name, int(udp.DstPort)})
		}
	}
}

// TestCaptureContainsSelectedPackets sends datagrams to two ports on a machine that responds to
// them.
func TestCaptureContainsSelectedPackets(t *testing.T) {
	machine := hosttest.NewNamespace(t, "machine")
	machine.Connect(t, "192.0.2.1/24", "192.0.2.2/24")
	machine.Serve(t, 80)
	machine.Serve(t, 81)
	ask := func(port int) {
		if _, err := hosttest.Host().Ask("udp4", fmt.Sprintf("192.0.2.2:%d", port)); err != nil {
			t.Error(err)
		}
	}
	for name, tt := range map[string]struct {
		filter Filter
		limit  int
		want   int // destination port of the first captured packet
	}{
		"all packets of one port":     {Filter{Port: 81}, 2, 81},
		"packets of the machine":      {Filter{Hosts: []netip.Addr{netip.MustParseAddr("192.0.2.2")}, Port: 80}, 2, 80},
		"packets between two":         {Filter{Hosts: []netip.Addr{netip.MustParseAddr("192.0.2.2"), netip.MustParseAddr("192.0.2.1")}, Port: 81}, 2, 81},
		"packets of the host's other": {Filter{Hosts: []netip.Addr{netip.MustParseAddr("192.0.2.1")}, Port: 80}, 4, 80},
	} {
		t.Run(name, func(t *testing.T) {
			var file bytes.Buffer
			started, done := make(chan struct{}), make(chan error)
			go func() {
				count, err := Run(t.Context(), []Device{{Name: "to-machine"}}, &file, tt.filter, tt.limit, func() { close(started) })
				if err == nil && count != tt.limit {
					err = fmt.Errorf("%d packets", count)
				}
				done <- err
			}()
			<-started
			for range tt.limit / 2 {
				ask(80)
				ask(81)
			}
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			if got := ports(t, &file); len(got) != tt.limit || got[0] != tt.want {
				t.Errorf("the capture contains UDP packets to the ports %v", got)
			}
		})
	}
}

// TestCaptureContainsPacketsOfAllDevices captures the packets at both ends of a connection, and at
// a device without traffic.
func TestCaptureContainsPacketsOfAllDevices(t *testing.T) {
	machine := hosttest.NewNamespace(t, "machine")
	machine.Connect(t, "192.0.2.1/24", "192.0.2.2/24")
	machine.Serve(t, 80)
	hosttest.Run(t, "ip netns exec machine ip link set lo up")
	var output bytes.Buffer
	devices := []Device{
		{Name: "to-machine", Title: "near"}, {Name: "eth0", Title: "far", Do: machine.Try}, {Name: "lo", Title: "idle", Do: machine.Try},
	}
	started, done := make(chan struct{}), make(chan error)
	go func() {
		count, err := Run(t.Context(), devices, &output, Filter{Port: 80}, 4, func() { close(started) })
		if err == nil && count != 4 {
			err = fmt.Errorf("%d packets", count)
		}
		done <- err
	}()
	<-started
	if _, err := hosttest.Host().Ask("udp4", "192.0.2.2:80"); err != nil {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, p := range packets(t, &output) {
		seen[p.device]++
	}
	if seen["near"] != 2 || seen["far"] != 2 || len(seen) != 2 {
		t.Errorf("packets by device: %v", seen)
	}
}

func TestCaptureEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var file bytes.Buffer
	if count, err := Run(ctx, []Device{{Name: "lo"}}, &file, Filter{Port: 1}, 0, cancel); count != 0 || err != nil {
		t.Errorf("%d packets, %v", count, err)
	}
	if len(ports(t, &file)) != 0 {
		t.Error("the capture contains packets")
	}
	if _, err := Run(t.Context(), []Device{{Name: "lo"}, {Name: "missing"}}, &file, Filter{}, 0, func() {}); err == nil {
		t.Error("capturing a missing device succeeded")
	}
}

// FuzzMatch verifies that matching an arbitrary frame does not panic.
func FuzzMatch(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x08\x00\x45\x00"))
	f.Fuzz(func(_ *testing.T, frame []byte) {
		Filter{Hosts: []netip.Addr{netip.MustParseAddr("192.0.2.2")}, Port: 80}.Match(frame)
	})
}
