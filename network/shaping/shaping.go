// Package shaping limits the bandwidth of pods with the kernel's traffic control.
//
// Packets to a pod queue at the host end of the pod's veth, in a token bucket filter (tbf). Packets
// from a pod arrive there, where the kernel has no queue. A filter redirects them to a device of
// type ifb, which has a queue of the same kind and then passes them on as if they had just arrived
// at the veth:
//
//	to the pod     bridge ── tbf ── veth ── pod
//	from the pod   pod ── veth ── u32 filter ── tbf of the ifb device ── veth ── bridge
//
// Redirected packets bypass the check of package spoofcheck at the veth. Therefore, the filter
// matches what that check accepts: IPv4 packets from the pod's addresses to the gateway. All other
// frames take the usual way, on which they are dropped or, if they are ARP, too few to count.
//
// A queue that is full drops packets. The ifb device is named after the veth, so everything of a
// pod can be found again after a crash. The kernel removes the rest with the veth.
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

// Limits are bandwidths in bits per second. Zero means no limit.
type Limits struct {
	Ingress uint64 // to the pod
	Egress  uint64 // from the pod
}

// Pod is the attachment of a pod.
type Pod struct {
	Device          string     // host end of the pod's veth
	Address         netip.Addr // IPv4
	MAC, GatewayMAC net.HardwareAddr
}

const (
	etherHeaderBytes = 14
	// burstPeriod is the time in which a pod can use the bandwidth that it did not use before. It
	// exceeds the delay of the kernel's timers on a busy machine.
	burstPeriod = 50 * time.Millisecond
	// queuePeriod is the time that a packet waits in a full queue.
	queuePeriod = 100 * time.Millisecond
	// Bounds of a queue, in frames and in bytes.
	minQueueFrames, maxQueueBytes = 16, 4 << 20
)

// Apply sets the limits of a pod, whose device must exist. It changes nothing if they are in force.
func Apply(p Pod, l Limits) error {
	link, err := netlinksafe.LinkByName(p.Device)
	if err != nil {
		return fmt.Errorf("limit bandwidth: find device %q: %w", p.Device, err)
	}
	if err := setRate(link, l.Ingress); err != nil {
		return fmt.Errorf("limit ingress bandwidth at device %q: %w", p.Device, err)
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

// setRate limits the rate at which a device sends. Zero removes the limit.
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
	// Microseconds. The bucket must have space for a frame.
	burst := max(float64(burstPeriod.Microseconds()), float64(2*frame)/float64(bytes)*1e6)
	queue := float64(bytes) * (burstPeriod + queuePeriod).Seconds()
	return netlink.QdiscReplace(&netlink.Tbf{
		QdiscAttrs: attributes,
		Rate:       bytes,
		Buffer:     uint32(min(burst*netlink.TickInUsec(), math.MaxUint32)),
		Limit:      uint32(min(max(queue, float64(minQueueFrames*frame)), maxQueueBytes)),
	})
}

// rate returns the rate in bits per second to which setRate limits a device. A rate is a multiple
// of 8.
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

// redirect redirects the packets of a pod to the queue.
func (p Pod) redirect(link, queue netlink.Link) error {
	isRedirected, err := redirects(link, queue)
	if err != nil || isRedirected {
		return err
	}
	if err := removeFilter(link); err != nil {
		return err
	}
	attributes := netlink.QdiscAttrs{LinkIndex: link.Attrs().Index, Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_CLSACT}
	if err := netlink.QdiscAdd(&netlink.Clsact{QdiscAttrs: attributes}); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("add classifier: %w", err)
	}
	err = netlink.FilterAdd(&netlink.U32{
		FilterAttrs: netlink.FilterAttrs{
			LinkIndex: link.Attrs().Index, Parent: netlink.HANDLE_MIN_INGRESS, Priority: 1, Protocol: unix.ETH_P_IP,
		},
		Sel:        p.selector(),
		RedirIndex: queue.Attrs().Index,
	})
	if err != nil {
		return fmt.Errorf("add filter: %w", err)
	}
	return nil
}

// selector matches the packets that package spoofcheck accepts. Its offsets are relative to the
// IPv4 header, which the Ethernet header precedes.
func (p Pod) selector() *netlink.TcU32Sel {
	const ethernet, sourceAddress, exact = -etherHeaderBytes, 12, math.MaxUint32
	header := slices.Concat(p.GatewayMAC, p.MAC, []byte{unix.ETH_P_IP >> 8, unix.ETH_P_IP & 0xff, 0, 0})
	keys := []netlink.TcU32Key{{Mask: exact, Val: binary.BigEndian.Uint32(p.Address.AsSlice()), Off: sourceAddress}}
	for i := 0; i < len(header); i += 4 {
		keys = append(keys, netlink.TcU32Key{Mask: exact, Val: binary.BigEndian.Uint32(header[i:]), Off: int32(ethernet + i)})
	}
	keys[len(keys)-1].Mask = 0xffff0000 // the IPv4 header follows
	return &netlink.TcU32Sel{Flags: netlink.TC_U32_TERMINAL, Nkeys: uint8(len(keys)), Keys: keys}
}

// redirects reports whether the only filter of a device redirects packets to the queue.
func redirects(link, queue netlink.Link) (bool, error) {
	filters, err := netlink.FilterList(link, netlink.HANDLE_MIN_INGRESS)
	if err != nil {
		return false, fmt.Errorf("list filters: %w", err)
	}
	isRedirect := func(f netlink.Filter) bool {
		u32, ok := f.(*netlink.U32)
		return ok && u32.RedirIndex == queue.Attrs().Index
	}
	return slices.ContainsFunc(filters, isRedirect), nil
}

func removeFilter(link netlink.Link) error {
	err := netlink.QdiscDel(&netlink.Clsact{QdiscAttrs: netlink.QdiscAttrs{
		LinkIndex: link.Attrs().Index, Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_CLSACT,
	}})
	if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) { // it has none
		return fmt.Errorf("remove filter: %w", err)
	}
	return nil
}
