// Package capture writes the packets of devices to a file in pcapng format, which tcpdump and
// Wireshark can open. The host needs neither of these programs, and does not need libpcap.
//
// Source: OpenShift Container Platform 3.11 Cluster Administration, Troubleshooting Throughput
// Issues.
package capture

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"sync"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
	"golang.org/x/sync/errgroup"
)

// maxFrame is the maximum number of bytes per frame in the file. It is tcpdump's default.
const maxFrame = 262144

// Filter selects packets. The zero value selects all packets.
type Filter struct {
	// Hosts lists addresses. A packet matches only if each address is the packet's source or
	// destination.
	Hosts []netip.Addr
	// Port, if not 0, is the source or destination port of TCP, UDP or SCTP.
	Port uint16
}

// Device is a network device whose packets are captured.
type Device struct {
	// Name is the device's name in its network namespace.
	Name string
	// Title identifies the device in the file, such as shop/web:eth0.
	Title string
	// Do calls a function in the device's network namespace. It is nil for a device in the caller's
	// namespace.
	Do func(func() error) error
}

// open returns a socket that receives the device's packets.
func (d Device) open() (handle *pcapgo.EthernetHandle, err error) {
	open := func() error {
		handle, err = pcapgo.NewEthernetHandle(d.Name)
		return err
	}
	if d.Do == nil {
		err = open()
	} else {
		err = d.Do(open)
	}
	return handle, err
}

// Run writes the packets of devices to out until ctx is done. If limit is not 0, Run also stops
// when it has written limit packets. It returns the number of packets written. Run calls started
// when the capture has started: out will contain all later packets that filter selects.
func Run(ctx context.Context, devices []Device, out io.Writer, filter Filter, limit int, started func()) (int, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	f := &file{filter: filter, limit: limit, end: cancel}
	var handles []*pcapgo.EthernetHandle
	closeAll := func() {
		for _, handle := range handles {
			_ = handle.Close()
		}
	}
	defer func() { closeAll() }()
	for _, device := range devices {
		handle, err := device.open()
		if err != nil {
			return 0, fmt.Errorf("capture packets on device %q: %w", device.Title, err)
		}
		handles = append(handles, handle)
		if err := f.add(out, device); err != nil {
			return 0, fmt.Errorf("write capture header: %w", err)
		}
	}
	started()
	group, ctx := errgroup.WithContext(ctx)
	defer context.AfterFunc(ctx, closeAll)()
	for i, handle := range handles {
		group.Go(func() error {
			if err := f.copy(ctx, i, handle); err != nil {
				return fmt.Errorf("capture packets on device %q: %w", devices[i].Title, err)
			}
			return nil
		})
	}
	err := group.Wait()
	return f.count, err
}

// file is a file that contains packets of several devices.
type file struct {
	filter Filter
	limit  int
	end    func() // ends the capture

	mu     sync.Mutex
	writer *pcapgo.NgWriter
	count  int
}

// add adds a device to the file. Devices are numbered in the order of the calls.
func (f *file) add(out io.Writer, device Device) (err error) {
	description := pcapgo.NgInterface{Name: device.Title, LinkType: layers.LinkTypeEthernet, SnapLength: maxFrame, TimestampResolution: 9}
	if f.writer == nil {
		f.writer, err = pcapgo.NewNgWriterInterface(out, description, pcapgo.DefaultNgWriterOptions)
	} else {
		_, err = f.writer.AddInterface(description)
	}
	if err != nil {
		return err
	}
	return f.writer.Flush()
}

// copy writes the packets of the device with the given number to the file until ctx is done.
func (f *file) copy(ctx context.Context, device int, handle *pcapgo.EthernetHandle) error {
	for {
		frame, info, err := handle.ZeroCopyReadPacketData()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if !f.filter.Match(frame) {
			continue
		}
		info.InterfaceIndex = device
		if err := f.write(info, frame); err != nil {
			return err
		}
	}
}

// write writes a packet unless the file already contains limit packets.
func (f *file) write(info gopacket.CaptureInfo, frame []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.limit != 0 && f.count == f.limit {
		return nil
	}
	if err := errors.Join(f.writer.WritePacket(info, frame), f.writer.Flush()); err != nil {
		return fmt.Errorf("write packet: %w", err)
	}
	if f.count++; f.count == f.limit {
		f.end()
	}
	return nil
}

// Match reports whether a filter selects an Ethernet frame. A fragment without a transport header
// has no port, so it does not match a filter with a port.
func (f Filter) Match(frame []byte) bool {
	if len(f.Hosts) == 0 && f.Port == 0 {
		return true
	}
	packet := gopacket.NewPacket(frame, layers.LayerTypeEthernet, gopacket.DecodeOptions{Lazy: true, NoCopy: true})
	return f.matchHosts(packet) && f.matchPort(packet)
}

func (f Filter) matchHosts(packet gopacket.Packet) bool {
	if len(f.Hosts) == 0 {
		return true
	}
	var ends []netip.Addr
	add := func(raw []byte) {
		address, _ := netip.AddrFromSlice(raw)
		ends = append(ends, address)
	}
	if network := packet.NetworkLayer(); network != nil {
		flow := network.NetworkFlow()
		add(flow.Src().Raw())
		add(flow.Dst().Raw())
	} else if arp, ok := packet.Layer(layers.LayerTypeARP).(*layers.ARP); ok {
		add(arp.SourceProtAddress)
		add(arp.DstProtAddress)
	}
	for _, host := range f.Hosts {
		if !slices.Contains(ends, host) {
			return false
		}
	}
	return true
}

func (f Filter) matchPort(packet gopacket.Packet) bool {
	if f.Port == 0 {
		return true
	}
	switch transport := packet.TransportLayer().(type) {
	case *layers.TCP:
		return uint16(transport.SrcPort) == f.Port || uint16(transport.DstPort) == f.Port
	case *layers.UDP:
		return uint16(transport.SrcPort) == f.Port || uint16(transport.DstPort) == f.Port
	case *layers.SCTP:
		return uint16(transport.SrcPort) == f.Port || uint16(transport.DstPort) == f.Port
	}
	return false
}
