// Package shaping limits pods' bandwidth with the kernel's traffic control.
//
// Packets to a pod are queued at the host end of the pod's veth device, in a token bucket filter
// (tbf). Packets from a pod arrive at the host end, where the kernel has no queue. A filter
// redirects them to an ifb device, which has a queue of the same kind. The ifb device then forwards
// them as if they had just arrived at the veth device:
//
//	to the pod     bridge ── tbf ── veth ── pod
//	from the pod   pod ── veth ── u32 filter ── tbf of the ifb device ── veth ── bridge
//
// Redirected packets bypass package spoofcheck's check at the veth device. Therefore, the filters
// match only packets that the check accepts. These are IP packets from the pod's addresses to the
// gateway and, for IPv6, only TCP, UDP, SCTP and fragments. All other frames bypass the queue: most
// of them are dropped, and ARP and ICMPv6 frames are usually few.
//
// A full queue drops packets. The ifb device's name is derived from the veth device's name, so that
// the ifb device can be found after a crash. The kernel removes all other objects with the veth
// device.
package shaping

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/containernetworking/plugins/pkg/netlinksafe"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Limits contains bandwidths in bits per second. Zero means no limit.
type Limits struct {
	Ingress uint64 // to the pod
	Egress  uint64 // from the pod
}

// Pod describes how a pod is attached to the network.
type Pod struct {
	Device          string     // host end of the pod's veth
	Address         netip.Addr // IPv4
	SecondAddress   netip.Addr // IPv6; optional
	MAC, GatewayMAC net.HardwareAddr
}

const (
	etherHeaderBytes = 14
	// burstPeriod determines the size of bursts: a pod can later use the bandwidth that it left
	// unused during this period. The period is longer than the delay of the kernel's timers on a
	// busy machine.
	burstPeriod = 50 * time.Millisecond
	// queuePeriod is the time that a packet waits in a full queue.
	queuePeriod = 100 * time.Millisecond
	// minQueueFrames is the minimum size of a queue, in frames. maxQueueBytes is the maximum size,
	// in bytes.
	minQueueFrames, maxQueueBytes = 16, 4 << 20
)

// Apply sets a pod's limits. The pod's device must exist. Apply is a no-op if the device already
// has these limits.
func Apply(p Pod, l Limits) error {
	link, err := netlinksafe.LinkByName(p.Device)
	if err != nil {
		return fmt.Errorf("limit bandwidth: find device %q: %w", p.Device, err)
	}
	if err := setRate(link, l.Ingress); err != nil {
		return fmt.Errorf("limit ingress bandwidth of device %q: %w", p.Device, err)
	}
	if l.Egress == 0 {
		if err := errors.Join(removeFilter(link), Remove(p.Device)); err != nil {
			return fmt.Errorf("remove limit of egress bandwidth of device %q: %w", p.Device, err)
		}
		return nil
	}
	queue, err := ensureQueue(link)
	if err == nil {
		err = setRate(queue, l.Egress)
	}
	if err == nil {
		err = p.redirect(link, queue)
	}
	if err != nil {
		return fmt.Errorf("limit egress bandwidth of device %q: %w", p.Device, err)
	}
	return nil
}

// setRate limits the rate, in bits per second, at which a device sends. Zero removes the limit.
func setRate(link netlink.Link, bits uint64) error {
	present, err := rate(link)
	if err != nil || present == bits {
		return err
	}
	attributes := netlink.QdiscAttrs{LinkIndex: link.Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT}
	if bits == 0 {
		return netlink.QdiscDel(&netlink.Tbf{QdiscAttrs: attributes})
	}
	bytes := max(bits/8, 1)
	frame := uint64(link.Attrs().MTU + etherHeaderBytes)
	// burst is in microseconds. The bucket must have space for two frames.
	burst := max(float64(burstPeriod.Microseconds()), float64(2*frame)/float64(bytes)*1e6)
	queue := float64(bytes) * (burstPeriod + queuePeriod).Seconds()
	return netlink.QdiscReplace(&netlink.Tbf{
		QdiscAttrs: attributes,
		Rate:       bytes,
		Buffer:     uint32(min(burst*netlink.TickInUsec(), math.MaxUint32)),
		Limit:      uint32(min(max(queue, float64(minQueueFrames*frame)), maxQueueBytes)),
	})
}

// rate returns the limit that setRate has set for a device, in bits per second. The limit is a
// multiple of 8.
func rate(link netlink.Link) (uint64, error) {
	qdiscs, err := netlink.QdiscList(link)
	if err != nil {
		return 0, fmt.Errorf("list queues: %w", err)
	}
	for _, qdisc := range qdiscs {
		if tbf, ok := qdisc.(*netlink.Tbf); ok && tbf.Parent == netlink.HANDLE_ROOT {
			return tbf.Rate * 8, nil
		}
	}
	return 0, nil
}

// redirect redirects a pod's packets to the queue.
func (p Pod) redirect(link, queue netlink.Link) error {
	selectors := p.selectors()
	present, err := redirects(link, queue)
	if err != nil || present == len(selectors) {
		return err
	}
	if err := removeFilter(link); err != nil {
		return err
	}
	attributes := netlink.QdiscAttrs{LinkIndex: link.Attrs().Index, Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_CLSACT}
	if err := netlink.QdiscAdd(&netlink.Clsact{QdiscAttrs: attributes}); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("add classifier: %w", err)
	}
	for i, selector := range selectors {
		attributes := netlink.FilterAttrs{LinkIndex: link.Attrs().Index, Parent: netlink.HANDLE_MIN_INGRESS, Priority: firstPriority, Protocol: unix.ETH_P_IP}
		if i > 0 {
			attributes.Priority, attributes.Protocol = firstPriority+1, unix.ETH_P_IPV6
		}
		if err := netlink.FilterAdd(&netlink.U32{FilterAttrs: attributes, Sel: selector, RedirIndex: queue.Attrs().Index}); err != nil {
			return fmt.Errorf("add filter: %w", err)
		}
	}
	return nil
}

// selectors returns the selectors that match the packets to redirect: IPv4 packets first, then IPv6
// packets by protocol.
func (p Pod) selectors() []*netlink.TcU32Sel {
	const ipv4Source, ipv6Source, ipv6Protocol = 12, 8, 4
	list := []*netlink.TcU32Sel{p.selector(unix.ETH_P_IP, p.Address.AsSlice(), ipv4Source)}
	if !p.SecondAddress.IsValid() {
		return list
	}
	for _, protocol := range []uint32{unix.IPPROTO_TCP, unix.IPPROTO_UDP, unix.IPPROTO_SCTP, unix.IPPROTO_FRAGMENT} {
		next := netlink.TcU32Key{Mask: 0x0000ff00, Val: protocol << 8, Off: ipv6Protocol}
		list = append(list, p.selector(unix.ETH_P_IPV6, p.SecondAddress.AsSlice(), ipv6Source, next))
	}
	return list
}

// selector returns a selector that matches packets to the gateway from the pod's MAC address. The
// packets must contain the IP address source at the given offset. Offsets are relative to the IP
// header, which follows the Ethernet header.
func (p Pod) selector(etherType uint16, source []byte, offset int, keys ...netlink.TcU32Key) *netlink.TcU32Sel {
	const exact = math.MaxUint32
	header := binary.BigEndian.AppendUint16(slices.Concat(p.GatewayMAC, p.MAC), etherType)
	for at, octets := range map[int][]byte{offset: source, -etherHeaderBytes: append(header, 0, 0)} {
		for i := 0; i < len(octets); i += 4 {
			keys = append(keys, netlink.TcU32Key{Mask: exact, Val: binary.BigEndian.Uint32(octets[i:]), Off: int32(at + i)})
		}
	}
	for i := range keys {
		if keys[i].Off == -2 {
			keys[i].Mask = 0xffff0000 // only two bytes, because the IP header follows
		}
	}
	return &netlink.TcU32Sel{Flags: netlink.TC_U32_TERMINAL, Nkeys: uint8(len(keys)), Keys: keys}
}

// redirects returns the number of filters on a device that redirect packets to the queue.
func redirects(link, queue netlink.Link) (count int, err error) {
	filters, err := netlink.FilterList(link, netlink.HANDLE_MIN_INGRESS)
	if err != nil {
		return 0, fmt.Errorf("list filters: %w", err)
	}
	for _, f := range filters {
		if u32, ok := f.(*netlink.U32); ok && u32.RedirIndex == queue.Attrs().Index {
			count++
		}
	}
	return count, nil
}

// firstPriority is the priority of the first filter. Package vxlan's filter has a smaller number
// and runs first.
const firstPriority = 2

// removeFilter removes the filters. The classifier remains, because it can have other filters.
func removeFilter(link netlink.Link) error {
	filters, err := netlink.FilterList(link, netlink.HANDLE_MIN_INGRESS)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) {
		return nil // the device has no classifier
	}
	if err != nil {
		return fmt.Errorf("list filters: %w", err)
	}
	for _, f := range filters {
		if u32, ok := f.(*netlink.U32); !ok || u32.RedirIndex == 0 {
			continue
		}
		if err := netlink.FilterDel(f); err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("remove filter: %w", err)
		}
	}
	return nil
}
