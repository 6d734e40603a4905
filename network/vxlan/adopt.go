package vxlan

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
)

// A previous process's maps belong to the programs that it attached. These programs can be of
// another version. The name of a map identifies its layout:
//
//   - Maps with the same name have the same fields at the same offsets. A later version can append
//     fields to the value. The value 0 of an appended field selects the behavior of the earlier
//     version. If only the size differs, a new process copies the entries.
//   - If a version moves a field or changes its meaning, it renames the map, for example from flows
//     to flows_2. A new process revokes the rights in a map with another name before it uses its
//     own map. Then all packets pass the network stack, with its rules, until the pods have rights
//     again.

// localsMap is the name of the map that contains pods' rights. flowsMap is the name of the map that
// contains pods' connections.
const localsMap, flowsMap = "locals", "flows"

// kindOf returns the part of a map's name that is the same for all layouts.
func kindOf(name string) string {
	kind, _, _ := strings.Cut(name, "_")
	return kind
}

// copiedMap is a map whose entries are copied from a map of a previous process, because the values
// have different sizes. If a previous process ended before it had replaced all programs, several
// processes can have such maps.
type copiedMap struct {
	own, former *ebpf.Map
	isRights    bool
}

// adopt continues to use the connections and the pods of a previous process's programs. Without
// this state, the packets of an open connection would pass the network stack, which could not
// determine the side that opened the connection.
func (p *programs) adopt() error {
	p.localsOf, p.former, p.isAged = map[netip.Addr]attachedLocal{}, map[netip.Addr]bool{}, false
	if err := revokeOtherLayouts(); err != nil {
		return err
	}
	for _, own := range []**ebpf.Map{&p.locals, &p.flows, &p.pairs, &p.shares, &p.clock} {
		if *own == nil {
			return nil // createMaps has failed
		}
		name, err := nameOf(*own)
		if err != nil {
			return err
		}
		formers, err := formerMaps(name)
		if err != nil {
			return err
		}
		same := slices.IndexFunc(formers, func(former *ebpf.Map) bool {
			return former.KeySize() == (*own).KeySize() && former.ValueSize() == (*own).ValueSize()
		})
		if same >= 0 {
			_ = (*own).Close()
			*own = formers[same]
			formers = slices.Delete(formers, same, same+1)
		}
		for _, former := range formers {
			p.copied = append(p.copied, copiedMap{*own, former, own == &p.locals})
		}
	}
	if err := p.copyEntries(true); err != nil {
		slog.Warn("open connections of pods with network policies might be interrupted", "error", err)
	}
	now, err := uptime()
	if err != nil {
		return err
	}
	if err := p.clock.Put(uint32(0), now); err != nil {
		return fmt.Errorf("set connection clock: %w", err)
	}
	var key, value []byte
	for entries := p.locals.Iterate(); entries.Next(&key, &value); {
		if address, ok := netip.AddrFromSlice(key); ok {
			// The device's name is unknown, so setLocal will attach the program to the device
			// again.
			rights := Rights(binary.NativeEndian.Uint32(value[localRights:]))
			p.localsOf[address] = attachedLocal{Local{Rights: rights}, int(binary.NativeEndian.Uint32(value[localDevice:]))}
		}
	}
	return nil
}

// copyEntries copies the previous process's entries that its own maps do not contain yet. Only the
// first call, for which isFirst is true, copies rights.
func (p *programs) copyEntries(isFirst bool) error {
	var errs []error
	for _, m := range p.copied {
		if isFirst || !m.isRights {
			errs = append(errs, copyMap(m.own, m.former))
		}
	}
	return errors.Join(errs...)
}

// copyConnections copies the connections that the programs of previous processes recorded before
// they were replaced.
func (p *programs) copyConnections() {
	if len(p.copied) > 0 {
		p.isAged = false // copying can restore connections of removed pods
	}
	if err := p.copyEntries(false); err != nil {
		slog.Warn("open connections of pods with network policies might be interrupted", "error", err)
	}
}

func (p *programs) closeCopied() {
	for _, m := range p.copied {
		_ = m.former.Close()
	}
	p.copied = nil
}

// copyMap copies the entries of a map whose values have a different size. It does not overwrite
// existing entries.
func copyMap(own, former *ebpf.Map) error {
	if own.KeySize() != former.KeySize() {
		return fmt.Errorf("copy entries of eBPF map %s: the keys have a different size", own)
	}
	var key, value []byte
	entries := former.Iterate()
	for entries.Next(&key, &value) {
		resized := make([]byte, own.ValueSize())
		copy(resized, value)
		if err := own.Update(key, resized, ebpf.UpdateNoExist); err != nil && !errors.Is(err, ebpf.ErrKeyExist) {
			return fmt.Errorf("copy entries of eBPF map %s: %w", own, err)
		}
	}
	if err := entries.Err(); err != nil {
		return fmt.Errorf("list entries of eBPF map %s: %w", former, err)
	}
	return nil
}

// restrictFormer removes rights from the programs of previous processes.
func restrictFormer(pods map[netip.Addr]Local) error {
	if err := revokeOtherLayouts(); err != nil {
		return err
	}
	return eachFormerMap(func(name string, m *ebpf.Map) (bool, error) {
		if name != localsMap {
			return false, nil
		}
		return false, restrictMap(m, pods)
	})
}

// restrictMap removes from a map all rights that pods does not contain.
func restrictMap(locals *ebpf.Map, pods map[netip.Addr]Local) error {
	changed := map[netip.Addr][]byte{} // nil if the pod is not in the list
	var key, value []byte
	entries := locals.Iterate()
	for entries.Next(&key, &value) {
		address, ok := netip.AddrFromSlice(key)
		if !ok {
			continue
		}
		pod, exists := pods[address]
		if !exists || len(value) < localRights+4 {
			changed[address] = nil
			continue
		}
		rights := binary.NativeEndian.Uint32(value[localRights:])
		if restricted := rights & uint32(pod.Rights); restricted != rights {
			changed[address] = append([]byte(nil), value...)
			binary.NativeEndian.PutUint32(changed[address][localRights:], restricted)
		}
	}
	errs := []error{entries.Err()}
	for address, value := range changed {
		var err error
		if value == nil {
			err = locals.Delete(address.AsSlice())
		} else {
			err = locals.Put(address.AsSlice(), value)
		}
		if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			errs = append(errs, fmt.Errorf("restrict pod %s: %w", address, err))
		}
	}
	return errors.Join(errs...)
}

// revokeOtherLayouts removes all rights from the programs of previous processes whose rights have a
// different layout. Without rights, the programs pass all packets to the network stack.
func revokeOtherLayouts() error {
	return eachFormerMap(func(name string, m *ebpf.Map) (bool, error) {
		if name == localsMap || kindOf(name) != localsMap {
			return false, nil
		}
		if err := deleteEntries(m, all); err != nil {
			return false, fmt.Errorf("revoke rights in eBPF map %q: %w", name, err)
		}
		return false, nil
	})
}

// revokeFormer removes all rights and connections from the programs of previous processes.
func revokeFormer() error {
	return eachFormerMap(func(name string, m *ebpf.Map) (bool, error) {
		if kind := kindOf(name); kind != localsMap && kind != flowsMap {
			return false, nil
		}
		if err := deleteEntries(m, all); err != nil {
			return false, fmt.Errorf("delete entries of eBPF map %q: %w", name, err)
		}
		return false, nil
	})
}

// all matches all keys of a map.
func all([]byte) bool { return true }

// deleteEntries deletes the map entries whose keys satisfy matches.
func deleteEntries(m *ebpf.Map, matches func(key []byte) bool) error {
	var keys [][]byte
	var key, value []byte
	entries := m.Iterate()
	for entries.Next(&key, &value) {
		if matches(key) {
			keys = append(keys, bytes.Clone(key))
		}
	}
	errs := []error{entries.Err()}
	for _, key := range keys {
		if err := m.Delete(key); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// formerMaps returns the maps with the given name that belong to previous processes' programs.
func formerMaps(name string) (formers []*ebpf.Map, err error) {
	err = eachFormerMap(func(present string, m *ebpf.Map) (bool, error) {
		if present != name {
			return false, nil
		}
		formers = append(formers, m)
		return true, nil
	})
	return formers, err
}

// formerPrograms returns the programs that are attached to devices.
func formerPrograms() (map[ebpf.ProgramID]bool, error) {
	filters, err := ownFilters()
	if err != nil {
		return nil, err
	}
	programs := map[ebpf.ProgramID]bool{}
	for _, filter := range filters {
		programs[ebpf.ProgramID(filter.Id)] = true
	}
	return programs, nil
}

// eachFormerMap calls a function with each map of previous processes' programs. It closes the map,
// unless the function returns true.
func eachFormerMap(f func(name string, m *ebpf.Map) (keep bool, err error)) error {
	programs, err := formerPrograms()
	if err != nil {
		return err
	}
	present := map[ebpf.MapID]bool{}
	for program := range programs {
		ids, err := mapsOf(program)
		if errors.Is(err, fs.ErrNotExist) {
			continue // the program's device has been removed
		}
		if err != nil {
			return err
		}
		for _, id := range ids {
			present[id] = true
		}
	}
	for _, id := range slices.Sorted(maps.Keys(present)) { // the oldest map is first
		m, err := ebpf.NewMapFromID(id)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("open eBPF map %d: %w", id, err)
		}
		keep := false
		name, err := nameOf(m)
		if err == nil {
			keep, err = f(name, m)
		}
		if !keep {
			_ = m.Close()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// mapsOf returns the IDs of a program's maps.
func mapsOf(id ebpf.ProgramID) ([]ebpf.MapID, error) {
	program, err := ebpf.NewProgramFromID(id)
	if err != nil {
		return nil, fmt.Errorf("open eBPF program %d: %w", id, err)
	}
	defer program.Close()
	info, err := program.Info()
	if err != nil {
		return nil, fmt.Errorf("read information about eBPF program %d: %w", id, err)
	}
	ids, _ := info.MapIDs()
	return ids, nil
}

func nameOf(m *ebpf.Map) (string, error) {
	info, err := m.Info()
	if err != nil {
		return "", fmt.Errorf("read information about eBPF map: %w", err)
	}
	return info.Name, nil
}
