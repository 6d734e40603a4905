package vxlan

import (
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"
)

// formerLinks returns the devices with programs of a previous process: the VXLAN device and the
// devices on network segments.
func formerLinks(device string) ([]netlink.Link, error) {
	links, err := segmentLinks()
	if err != nil {
		return nil, err
	}
	link, err := find(device)
	if err != nil || link == nil {
		return links, err
	}
	return append([]netlink.Link{link}, links...), nil
}

// formerMap returns a map of the programs that are attached to the devices, or nil if there is no
// such map.
func formerMap(links []netlink.Link, name string) (*ebpf.Map, error) {
	for _, link := range links {
		filters, err := netlink.FilterList(link, netlink.HANDLE_MIN_INGRESS)
		if err != nil {
			return nil, fmt.Errorf("list programs of device %q: %w", link.Attrs().Name, err)
		}
		for _, filter := range filters {
			program, isProgram := filter.(*netlink.BpfFilter)
			if !isProgram || program.Name != filterName {
				continue
			}
			if m, err := mapOf(ebpf.ProgramID(program.Id), name); err != nil || m != nil {
				return m, err
			}
		}
	}
	return nil, nil
}

// mapOf returns a program's map, or nil if the program has no such map.
func mapOf(id ebpf.ProgramID, name string) (*ebpf.Map, error) {
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
	for _, id := range ids {
		m, err := ebpf.NewMapFromID(id)
		if err != nil {
			return nil, fmt.Errorf("open eBPF map %d: %w", id, err)
		}
		if present, err := nameOf(m); err == nil && present == name {
			return m, nil
		}
		_ = m.Close()
	}
	return nil, nil
}

func nameOf(m *ebpf.Map) (string, error) {
	info, err := m.Info()
	if err != nil {
		return "", fmt.Errorf("read information about eBPF map: %w", err)
	}
	return info.Name, nil
}
