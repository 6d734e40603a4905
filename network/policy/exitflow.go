package policy

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"reflect"

	"github.com/containernetworking/plugins/pkg/netlinksafe"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/slipway-platform/slipway/network/cni"
	"github.com/slipway-platform/slipway/network/egressip"
)

// forgetFlows makes the kernel forget connections to outside addresses whose source address is
// wrong after a change of exits. The kernel translates the source address of a connection only when
// it is opened. The last chain of exitChains drops all packets with another address. Therefore, a
// sender of datagrams that never pauses could otherwise never reach its destination again.
//
// It is a no-op if the exits are the same as in the last call.
func (s *enforcement) forgetFlows(exits map[string]egressip.Exit, local []cni.Pod) error {
	if reflect.DeepEqual(exits, s.exits) || len(exits)+len(s.exits) == 0 {
		return nil
	}
	addresses, err := netlinksafe.AddrList(nil, unix.AF_INET)
	if err != nil {
		return fmt.Errorf("list addresses of the host: %w", err)
	}
	filter := staleFlows{networks: s.Networks, sources: map[netip.Addr]netip.Addr{}, kept: map[netip.Addr]bool{}}
	for _, address := range addresses {
		filter.kept[fromIP(address.IP)] = true
	}
	snapshot := s.objects.snapshot(s.NodeName, local)
	for _, service := range snapshot.platform {
		filter.kept[service] = true
	}
	projects := maps.Clone(s.exits)
	if projects == nil {
		projects = map[string]egressip.Exit{}
	}
	maps.Copy(projects, exits)
	for _, p := range snapshot.pods {
		if _, isAffected := projects[p.namespace]; !isAffected || !p.address.Is4() {
			continue
		}
		// Without an exit, all connections have a wrong address.
		filter.sources[p.address] = netip.Addr{}
		exit, exists := exits[p.namespace]
		held := exit.Held[s.NodeName]
		switch {
		case exists && len(held) > 0 && (exit.Host == s.NodeName || !p.local):
			filter.sources[p.address] = held[0]
		case exists:
			filter.sources[p.address] = p.address // the host with the address translates it
		}
	}
	_, err = netlink.ConntrackDeleteFilters(netlink.ConntrackTable, unix.AF_INET, filter)
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("delete conntrack entries of projects with egress IPs: %w", err)
	}
	s.exits = exits
	return nil
}

// staleFlows matches the conntrack entries of connections whose source address is wrong. It
// implements netlink.CustomConntrackFilter.
type staleFlows struct {
	networks Networks
	// sources maps pods to the addresses to which this host translates them.
	sources map[netip.Addr]netip.Addr
	// kept contains the destinations whose connections are never translated: this host's addresses,
	// and the platform's services.
	kept map[netip.Addr]bool
}

// MatchConntrackFlow reports whether the kernel deletes the entry.
func (s staleFlows) MatchConntrackFlow(flow *netlink.ConntrackFlow) bool {
	source, isAffected := s.sources[fromIP(flow.Forward.SrcIP)]
	service, target := fromIP(flow.Forward.DstIP), fromIP(flow.Reverse.SrcIP)
	if !isAffected || s.kept[service] || s.kept[target] || s.networks.isPod(target) || s.networks.Services.Contains(target) {
		return false
	}
	return fromIP(flow.Reverse.DstIP) != source
}

func fromIP(ip []byte) netip.Addr {
	address, _ := netip.AddrFromSlice(ip)
	return address.Unmap()
}
