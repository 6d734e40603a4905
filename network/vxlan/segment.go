package vxlan

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// filterName is the name of all filters that contain the programs.
const filterName = "slipway"

// Field offsets in struct bpf_redir_neigh, and its size. The address is in network byte order.
const (
	hopFamily, hopAddress = 0, 4
	hopSize               = 20
)

// skbType is the offset of the skb field that specifies whether the frame is addressed to this
// host.
const skbType = 4

// nextHop prepares the address to which a packet is sent on a network segment. The family is 0 if
// the packet is sent through VXLAN. R0 points to the other node.
func nextHop() asm.Instructions {
	return asm.Instructions{
		asm.Mov.Imm(asm.R1, 0),
		asm.StoreMem(asm.RFP, stackHop+hopFamily, asm.R1, asm.Word),
		asm.StoreMem(asm.RFP, stackHop+hopAddress+4, asm.R1, asm.DWord),
		asm.StoreMem(asm.RFP, stackHop+hopAddress+12, asm.R1, asm.Word),
		asm.LoadMem(asm.R1, asm.R0, peerHop, asm.Word),
		asm.StoreMem(asm.RFP, stackHop+hopAddress, asm.R1, asm.Word),
		asm.JEq.Imm(asm.R1, 0, "in VXLAN"),
		asm.Mov.Imm(asm.R1, unix.AF_INET),
		asm.StoreMem(asm.RFP, stackHop+hopFamily, asm.R1, asm.Word),
		asm.Mov.Imm(asm.R1, 0).WithSymbol("in VXLAN"),
	}
}

// toSegment sends packets to the next hop on a network segment. The kernel sets their MAC
// addresses.
func toSegment() asm.Instructions {
	return join(
		asm.Instructions{asm.LoadMem(asm.R1, asm.RFP, stackPath, asm.Word).WithSymbol("segment")},
		stackPointer(asm.R2, stackHop),
		asm.Instructions{
			asm.Mov.Imm(asm.R3, hopSize), asm.Mov.Imm(asm.R4, 0), asm.FnRedirectNeigh.Call(), asm.Return(),
		},
	)
}

// segmentEgressProgram returns the program for packets that the host sends on a network segment. It
// records connections that pods open through the network stack.
func segmentEgressProgram(m *kernelMaps) asm.Instructions {
	return join(
		asm.Instructions{
			asm.Mov.Reg(asm.R6, asm.R1),
			asm.LoadMem(asm.R7, asm.R6, skbProtocol, asm.Word),
		},
		recordStack(m),
		asm.Instructions{asm.Mov.Imm(asm.R0, verdictNext), asm.Return()},
	)
}

// segmentIngressProgram returns the program for packets that arrive on a network segment. It
// delivers packets of direct connections from pods on the hosts of the segment. All other packets
// pass.
func segmentIngressProgram(m *kernelMaps) asm.Instructions {
	return join(
		asm.Instructions{
			asm.Mov.Reg(asm.R6, asm.R1),
			asm.LoadMem(asm.R7, asm.R6, skbProtocol, asm.Word),
			asm.JNE.Imm(asm.R7, protocol(unix.ETH_P_IP), "pass"),
			asm.LoadMem(asm.R1, asm.R6, skbVLAN, asm.Word),
			asm.JNE.Imm(asm.R1, 0, "pass"),
			asm.LoadMem(asm.R1, asm.R6, skbType, asm.Word),
			asm.JNE.Imm(asm.R1, unix.PACKET_HOST, "pass"),
			asm.Mov.Imm(asm.R1, settings4), asm.StoreMem(asm.RFP, stackIndex, asm.R1, asm.Word),
		},
		lookup(m.settings.FD(), stackIndex),
		asm.Instructions{asm.JEq.Imm(asm.R0, 0, "pass"), asm.Mov.Reg(asm.R8, asm.R0)},
		tcpFrame("pass"),
		mapped(stackTarget, stackIP+ipTarget),
		isLocal(stackTarget, "pass"),
		mapped(stackSource, stackIP+ipSource),
		peerOf(m, stackSource, "pass"),
		asm.Instructions{
			asm.LoadMem(asm.R1, asm.R0, peerDevice, asm.Word),
			asm.StoreMem(asm.RFP, stackPath, asm.R1, asm.Word),
		},
		toPod(m),
		ending(verdictNext),
	)
}

// setSegments attaches the programs to the devices on the network segments of the hosts, and
// detaches them from all other devices. It does not replace programs of a previous process, because
// the maps might not be complete yet. mtu is the MTU of pods. For each unusable device, setSegments
// returns an error only once.
func (p *programs) setSegments(peers map[netip.Prefix]Peer, mtu int) error {
	desired := map[int]bool{}
	for subnet, peer := range peers {
		if peer.Routed && peer.Device != 0 && subnet.Addr().Is4() {
			desired[peer.Device] = true
		}
	}
	var errs []error
	if p.segments == nil {
		segments, err := segmentDevices()
		if err != nil {
			return err
		}
		p.segments = segments
	}
	for index := range p.segments {
		if !desired[index] {
			delete(p.segments, index)
			errs = append(errs, detachSegment(index))
		}
	}
	unusable := map[int]string{}
	for index := range desired {
		link, err := netlink.LinkByIndex(index)
		if err == nil {
			err = checkSegment(link, mtu)
		}
		if err == nil && !p.segments[index] {
			err = p.attachSegment(link)
		}
		if err == nil {
			p.segments[index] = true
			continue
		}
		delete(p.segments, index)
		if unusable[index] = err.Error(); p.unusable[index] == unusable[index] {
			err = nil // an earlier call has returned the error
		}
		errs = append(errs, err, detachSegment(index))
	}
	p.unusable = unusable
	return errors.Join(errs...)
}

// checkSegment returns an error if direct connections cannot use a device. The device's frames must
// have Ethernet headers. They must be large enough for the packets of pods, because only the
// network stack reports larger packets to the pods. No other filter or program may accept packets
// before these programs process them. Otherwise, the network stack would receive replies of
// connections that it does not track.
func checkSegment(device netlink.Link, mtu int) error {
	name := device.Attrs().Name
	if device.Attrs().EncapType != "ether" {
		return fmt.Errorf("the frames of device %q have no Ethernet headers", name)
	}
	if device.Attrs().MTU < mtu {
		return fmt.Errorf("the MTU of device %q is %d, which is less than the MTU of pods, %d", name, device.Attrs().MTU, mtu)
	}
	for _, hook := range []struct {
		parent uint32
		tcx    ebpf.AttachType
	}{{netlink.HANDLE_MIN_INGRESS, ebpf.AttachTCXIngress}, {netlink.HANDLE_MIN_EGRESS, ebpf.AttachTCXEgress}} {
		filters, err := netlink.FilterList(device, hook.parent)
		if err != nil {
			return fmt.Errorf("list filters of device %q: %w", name, err)
		}
		for _, filter := range filters {
			if !isSegmentFilter(filter) && filter.Attrs().Priority <= segmentPriority {
				return fmt.Errorf("device %q has a tc filter with the priority %d; remove it, or give it a priority of at least %d",
					name, filter.Attrs().Priority, segmentPriority+1)
			}
		}
		programs, err := link.QueryPrograms(link.QueryOptions{Target: device.Attrs().Index, Attach: hook.tcx})
		switch {
		case errors.Is(err, unix.EINVAL), errors.Is(err, ebpf.ErrNotSupported): // Linux before 6.6
		case err != nil:
			return fmt.Errorf("list tcx programs of device %q: %w", name, err)
		case len(programs.Programs) > 0:
			return fmt.Errorf("device %q has tcx programs; detach them (bpftool net show dev %[1]s lists them)", name)
		}
	}
	return nil
}

// repairSegments attaches the programs to the devices again. It also replaces the programs of a
// previous process.
func (p *programs) repairSegments() error {
	var errs []error
	for index := range p.segments {
		link, err := netlink.LinkByIndex(index)
		if err == nil {
			err = p.attachSegment(link)
		}
		if err != nil {
			delete(p.segments, index)
			p.unusable[index] = err.Error()
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// attachSegment attaches the programs to a device.
func (p *programs) attachSegment(link netlink.Link) error {
	for parent, program := range segmentHooks(p.segmentEgress, p.segmentIngress) {
		if err := attach(link, parent, segmentPriority, program); err != nil {
			return err
		}
	}
	return nil
}

// segmentHooks returns the programs, keyed by tc hook.
func segmentHooks(egress, ingress *ebpf.Program) map[uint32]*ebpf.Program {
	return map[uint32]*ebpf.Program{netlink.HANDLE_MIN_EGRESS: egress, netlink.HANDLE_MIN_INGRESS: ingress}
}

// segmentDevices returns the indexes of the devices that have the programs for network segments.
func segmentDevices() (map[int]bool, error) {
	filters, err := ownFilters()
	if err != nil {
		return nil, err
	}
	devices := map[int]bool{}
	for _, filter := range filters {
		if isSegmentFilter(filter) {
			devices[filter.LinkIndex] = true
		}
	}
	return devices, nil
}

// ownFilters returns this package's filters for received packets on all devices.
func ownFilters() (own []*netlink.BpfFilter, err error) {
	queues, err := netlink.QdiscList(nil)
	if err != nil {
		return nil, fmt.Errorf("list tc hooks: %w", err)
	}
	for _, queue := range queues {
		if queue.Attrs().Parent != netlink.HANDLE_CLSACT {
			continue
		}
		link, err := netlink.LinkByIndex(queue.Attrs().LinkIndex)
		if errors.As(err, &netlink.LinkNotFoundError{}) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("find device %d: %w", queue.Attrs().LinkIndex, err)
		}
		filters, err := netlink.FilterList(link, netlink.HANDLE_MIN_INGRESS)
		if err != nil {
			return nil, fmt.Errorf("list programs of device %q: %w", link.Attrs().Name, err)
		}
		for _, filter := range filters {
			if program, isProgram := filter.(*netlink.BpfFilter); isProgram && program.Name == filterName {
				own = append(own, program)
			}
		}
	}
	return own, nil
}

// segmentFilters returns the filters at a tc hook that contain programs for network segments.
func segmentFilters(link netlink.Link, parent uint32) (own []netlink.Filter, err error) {
	filters, err := netlink.FilterList(link, parent)
	if err != nil {
		return nil, fmt.Errorf("list programs of device %q: %w", link.Attrs().Name, err)
	}
	for _, filter := range filters {
		if isSegmentFilter(filter) {
			own = append(own, filter)
		}
	}
	return own, nil
}

// isSegmentFilter reports whether a filter contains a program for network segments.
func isSegmentFilter(filter netlink.Filter) bool {
	program, isProgram := filter.(*netlink.BpfFilter)
	return isProgram && program.Name == filterName && program.Priority == segmentPriority
}

// RemoveSegments detaches the programs from all devices on network segments.
func RemoveSegments() error {
	devices, err := segmentDevices()
	errs := []error{err}
	for index := range devices {
		errs = append(errs, detachSegment(index))
	}
	return errors.Join(errs...)
}

// detachSegment detaches the programs from a device. It then removes the device's tc hooks unless
// they have other filters.
func detachSegment(index int) error {
	link, err := netlink.LinkByIndex(index)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("find device %d: %w", index, err)
	}
	removed, others := 0, 0
	for parent := range segmentHooks(nil, nil) {
		own, err := segmentFilters(link, parent)
		if err != nil {
			return err
		}
		for _, filter := range own {
			if err := netlink.FilterDel(filter); err != nil && !errors.Is(err, unix.ENOENT) {
				return fmt.Errorf("remove program from device %q: %w", link.Attrs().Name, err)
			}
			removed++
		}
		remaining, err := netlink.FilterList(link, parent)
		if err != nil {
			return fmt.Errorf("list programs of device %q: %w", link.Attrs().Name, err)
		}
		others += len(remaining)
	}
	if removed == 0 || others > 0 {
		return nil
	}
	if hooks, err := findHooks(link); err != nil || !isClsact(hooks) {
		return err
	}
	if err := netlink.QdiscDel(hooksOf(index)); err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("remove tc hooks from device %q: %w", link.Attrs().Name, err)
	}
	return nil
}
