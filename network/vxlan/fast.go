package vxlan

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"net/netip"

	"github.com/cilium/ebpf"
	"github.com/containernetworking/plugins/pkg/netlinksafe"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Local is a pod on this node that can have direct connections to pods on other nodes. All of its
// other packets take the path through the kernel's network stack, with its rules and its address
// translation.
//
// A connection is direct only if its first packet is direct. A connection never moves from the
// stack to the direct path, because the stack might translate its addresses. The packets of the
// side that opened the connection require rights of the pod. Therefore, a new policy for the pod
// takes effect immediately: packets without rights return to the stack, which checks them. Packets
// in the other direction are replies, which policies do not restrict, so they stay on the direct
// path. Otherwise, the first packet of the connection in the stack could be a reply, and the stack
// would treat the opener's packets as replies.
type Local struct {
	// Device is the name of the host end of the pod's veth device.
	Device string
	Rights Rights
	// Project is the pod's project. The direct connections of all pods in a project share a part of
	// the connection table.
	Project string
}

// share returns the key of the project's share.
func (l Local) share() uint32 {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(l.Project))
	return sum.Sum32()
}

// Rights determine which packets can bypass the kernel's network stack.
type Rights uint32

// Rights apply to packets that open a connection and to later packets from the side that opened it.
// Replies require no rights. A Move value replaces the right to continue existing connections: each
// of them moves to the stack when its opener sends the next packet. After that, its replies pass
// the stack too. If the stack can drop the opener's packets, the connections must not move, because
// the stack would then process only replies.
const (
	RightOpen         Rights = 1 << iota // new connections of the pod
	RightKeepOpened                      // existing connections that the pod opened
	RightAccept                          // new connections to the pod
	RightKeepAccepted                    // existing connections to the pod
	MoveOpened                           // the pod's existing connections move to the stack
	MoveAccepted                         // existing connections to the pod move to the stack
)

// AllRights contains all rights.
const AllRights = RightOpen | RightKeepOpened | RightAccept | RightKeepAccepted

// attachedLocal is a pod whose device has the program.
type attachedLocal struct {
	Local
	index int
}

// Connect enables direct connections for exactly the given pods, keyed by IPv4 address. If the node
// has no device yet, Connect takes effect when the device is created.
func (t *Tunnel) Connect(pods map[netip.Addr]Local) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.locals = maps.Clone(pods)
	if t.programs == nil {
		return nil
	}
	return t.programs.connect(t.locals)
}

// connect sets the pods that have direct connections. After that, the previous processes' maps are
// no longer needed. The programs of these processes can remain attached to the devices of pods
// without rights.
func (p *programs) connect(pods map[netip.Addr]Local) error {
	err := p.setLocals(pods)
	p.copyConnections()
	if err != nil || !p.isAttached {
		return err
	}
	var errs []error
	for _, m := range p.copied {
		if m.isRights || m.own == p.flows {
			errs = append(errs, deleteEntries(m.former, all))
		}
	}
	p.closeCopied()
	return errors.Join(errs...)
}

// Restrict removes the rights that the given pods do not have, and all rights of other pods. It
// does not add rights. Until Connect has replaced the programs of previous processes, Restrict also
// removes rights from these programs.
func (t *Tunnel) Restrict(pods map[netip.Addr]Local) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for address, present := range maps.Clone(t.locals) {
		if pod, exists := pods[address]; exists {
			present.Rights &= pod.Rights
			t.locals[address] = present
		} else {
			delete(t.locals, address)
		}
	}
	if t.programs == nil {
		return restrictFormer(pods)
	}
	return t.programs.restrict(pods)
}

// restrict removes rights, including the rights of previous processes' pods.
func (p *programs) restrict(pods map[netip.Addr]Local) error {
	var errs []error
	for _, m := range p.copied {
		if m.isRights {
			errs = append(errs, restrictMap(m.former, pods))
		}
	}
	for address, present := range maps.Clone(p.localsOf) {
		pod, exists := pods[address]
		if !exists {
			errs = append(errs, p.removeLocal(address))
			continue
		}
		if rights := present.Rights & pod.Rights; rights != present.Rights {
			present.Rights = rights
			errs = append(errs, p.putLocal(address, present))
		}
	}
	return errors.Join(errs...)
}

// removeLocal removes a pod.
func (p *programs) removeLocal(address netip.Addr) error {
	if err := p.locals.Delete(address.AsSlice()); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("remove pod %s: %w", address, err)
	}
	delete(p.localsOf, address)
	p.former[address] = true
	return nil
}

// putLocal adds a pod whose device has the program, or sets its rights.
func (p *programs) putLocal(address netip.Addr, pod attachedLocal) error {
	value := binary.NativeEndian.AppendUint32(nil, uint32(pod.index))
	value = binary.NativeEndian.AppendUint32(value, uint32(pod.Rights))
	value = binary.NativeEndian.AppendUint32(value, pod.share())
	if err := p.shares.Update(pod.share(), uint32(0), ebpf.UpdateNoExist); err != nil && !errors.Is(err, ebpf.ErrKeyExist) {
		return fmt.Errorf("set number of connections of project %q: %w", pod.Project, err)
	}
	if err := p.locals.Put(address.AsSlice(), value); err != nil {
		return fmt.Errorf("set rights of pod %s: %w", address, err)
	}
	p.localsOf[address] = pod
	return nil
}

// setLocals attaches the program to the pods' devices, and grants the pods their rights.
func (p *programs) setLocals(pods map[netip.Addr]Local) error {
	var errs []error
	for address := range maps.Clone(p.localsOf) {
		if _, exists := pods[address]; exists {
			continue
		}
		errs = append(errs, p.removeLocal(address))
	}
	for address, pod := range pods {
		present, exists := p.localsOf[address]
		if exists && present.Local == pod || !exists && pod.Rights&(RightOpen|RightAccept) == 0 {
			continue // the pod is unchanged, or has no rights and thus no connections
		}
		if err := p.setLocal(address, pod, present); err != nil {
			errs = append(errs, fmt.Errorf("connect pod %s: %w", address, err))
		}
	}
	return errors.Join(errs...)
}

// setLocal adds a pod, or replaces the pod that has the address. present is empty if no pod has the
// address.
func (p *programs) setLocal(address netip.Addr, pod Local, present attachedLocal) error {
	index := present.index
	if present.Device != pod.Device {
		link, err := netlinksafe.LinkByName(pod.Device)
		if err != nil {
			return nil //nolint:nilerr // the pod is terminating
		}
		if index != link.Attrs().Index {
			// The packets of a former pod's connections must not reach the new pod as replies.
			if err := p.forget(address, present); err != nil {
				return err
			}
		}
		index = link.Attrs().Index
		if err := attach(link, netlink.HANDLE_MIN_INGRESS, devicePriority, p.pod); err != nil {
			return err
		}
	}
	return p.putLocal(address, attachedLocal{pod, index})
}

// forget removes the pod that previously had an address, and its connections. present is empty if
// that pod has already been removed.
func (p *programs) forget(address netip.Addr, present attachedLocal) error {
	if present != (attachedLocal{}) {
		if err := p.removeLocal(address); err != nil {
			return err
		}
	}
	isOfPod := func(key []byte) bool { return bytes.Equal(key[flowLocal:flowLocal+4], address.AsSlice()) }
	for _, m := range p.copied {
		if m.own != p.flows {
			continue
		}
		if err := deleteEntries(m.former, isOfPod); err != nil {
			return fmt.Errorf("remove connections of former pod %s: %w", address, err)
		}
	}
	if p.isAged && !p.former[address] {
		return nil // there was no such pod, or Age has removed its connections
	}
	if err := p.eachFlow(func(key, _ []byte) bool { return isOfPod(key) }); err != nil {
		return err
	}
	delete(p.former, address)
	return nil
}

// Times, in seconds, for which a connection can be idle before it is removed. closedTimeout applies
// to connections that both sides have closed, that never had a response, or whose packets pass the
// network stack. resetTimeout applies to connections that a packet has reset. It is longer, because
// the packet can be forged. idleTimeout, which is the same as the service proxy's timeout, applies
// to all other connections.
const (
	closedTimeout = 60
	resetTimeout  = 600
	idleTimeout   = 86400
)

// Age removes connections that have ended. It also sets the clock that the programs use as the time
// of each packet, so call Age periodically.
func (t *Tunnel) Age() error {
	now, err := uptime()
	if err != nil {
		return err
	}
	return t.age(now)
}

// uptime returns the time since the host booted, in seconds.
func uptime() (uint32, error) {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		return 0, fmt.Errorf("read clock: %w", err)
	}
	return uint32(now.Sec), nil
}

func (t *Tunnel) age(now uint32) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.programs == nil {
		return nil
	}
	p := t.programs
	if err := p.clock.Put(uint32(0), now); err != nil {
		return fmt.Errorf("set connection clock: %w", err)
	}
	connections := map[uint32]uint32{} // by share
	for _, pod := range p.localsOf {
		connections[pod.share()] = 0
	}
	err := p.eachFlow(func(key, value []byte) bool {
		address, _ := netip.AddrFromSlice(key[flowLocal : flowLocal+4])
		pod, exists := p.localsOf[address]
		// The age can be negative, because the program might have read the clock before this call.
		age := int32(now - binary.NativeEndian.Uint32(value[flowTime:]))
		ended := !exists || age >= timeout(binary.NativeEndian.Uint32(value[flowState:]))
		if !ended {
			connections[pod.share()]++
		}
		return ended
	})
	if err != nil {
		return err
	}
	p.isAged, p.former = true, map[netip.Addr]bool{}
	return p.setShares(connections)
}

// setShares sets each project's number of connections. The programs count new connections, but not
// the connections that end.
func (p *programs) setShares(connections map[uint32]uint32) error {
	var errs []error
	var unused []uint32
	var share, former uint32
	entries := p.shares.Iterate()
	for entries.Next(&share, &former) {
		if _, exists := connections[share]; !exists {
			unused = append(unused, share)
		}
	}
	errs = append(errs, entries.Err())
	for _, share := range unused {
		if err := p.shares.Delete(share); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			errs = append(errs, err)
		}
	}
	for share, count := range connections {
		errs = append(errs, p.shares.Put(share, count))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("set connection numbers: %w", err)
	}
	return nil
}

// timeout returns the time, in seconds, for which a connection can be idle before it is removed.
func timeout(state uint32) int32 {
	const bothClosed = closedHere | closedThere
	switch {
	case state&bothClosed == bothClosed, state&answered == 0, state&stateMask == viaStack:
		return closedTimeout
	case state&closedReset != 0:
		return resetTimeout
	}
	return idleTimeout
}

// eachFlow calls a function for each connection. It removes the connections for which the function
// returns true.
func (p *programs) eachFlow(ended func(key, value []byte) bool) error {
	const batch = 4096
	keys, values := make([][flowSize]byte, batch), make([][flowValueSize]byte, batch)
	var remove [][flowSize]byte
	var cursor ebpf.MapBatchCursor
	for isLast := false; !isLast; {
		count, err := p.flows.BatchLookup(&cursor, keys, values, nil)
		if isLast = errors.Is(err, ebpf.ErrKeyNotExist); err != nil && !isLast {
			return fmt.Errorf("list connections: %w", err)
		}
		for i := range count {
			if ended(keys[i][:], values[i][:]) {
				remove = append(remove, keys[i])
			}
		}
	}
	var errs []error
	for _, key := range remove {
		if err := p.flows.Delete(key); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			errs = append(errs, fmt.Errorf("remove connection: %w", err))
		}
	}
	return errors.Join(errs...)
}
