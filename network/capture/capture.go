// Package capture writes a device's packets to a file in pcap format, which tcpdump and Wireshark
// read. The host needs neither these programs nor libpcap.
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
	"os"
	"slices"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
)

// maxFrame is the maximum number of bytes per frame in the file. It is tcpdump's default.
const maxFrame = 262144

// Filter selects packets. Its zero value selects all packets.
type Filter struct {
	// Hosts contains addresses. A packet matches only if each address is the packet's source or
	// destination.
	Hosts []netip.Addr
	// Port, if not 0, is the source or destination port of TCP, UDP or SCTP.
	Port uint16
}

// Run writes the packets of a device in this network namespace until ctx is done or, unless limit
// is 0, until it has written limit packets. It returns the number of packets written. Run calls
// started when the capture has started: the file contains all later packets.
func Run(ctx context.Context, device string, out io.Writer, filter Filter, limit int, started func()) (int, error) {
	count := 0
	handle, err := pcapgo.NewEthernetHandle(device)
	if err != nil {
		return 0, fmt.Errorf("capture packets of device %q: %w", device, err)
	}
	defer context.AfterFunc(ctx, func() { _ = handle.Close() })()
	defer handle.Close()
	file := pcapgo.NewWriterNanos(out)
	if err := file.WriteFileHeader(maxFrame, layers.LinkTypeEthernet); err != nil {
		return 0, fmt.Errorf("write header of capture: %w", err)
	}
	started()
	for limit == 0 || count < limit {
		frame, info, err := handle.ZeroCopyReadPacketData()
		if ctx.Err() != nil {
			return count, nil
		}
		if err != nil {
			return count, fmt.Errorf("capture packets of device %q: %w", device, err)
		}
		if !filter.Match(frame) {
			continue
		}
		if err := file.WritePacket(info, frame); err != nil {
			if errors.Is(err, os.ErrClosed) {
				return count, nil
			}
			return count, fmt.Errorf("write captured packet: %w", err)
		}
		count++
	}
	return count, nil
}

// Match reports whether a filter selects an Ethernet frame. A fragment without a transport header
// has no port.
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
