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
	"github.com/slipway-platform/slipway/network/ipfamily"
)

// forgetFlows makes the kernel forget connections to addresses outside the cluster whose source
// address is wrong after a change of exits. The kernel chooses the translated source address of a
// connection only when the connection is opened. The last chain of exitChains drops all packets
// with a wrong source address. Therefore, without forgetFlows, a program that sends datagrams
// without a pause could never reach its destination again.
//
// It is a no-op if the exits are the same as in the last call.
func (s *enforcement) forgetFlows(exits map[string]egressip.Exit, local []cni.Pod) error {
	if reflect.DeepEqual(exits, s.exits) || len(exits)+len(s.exits) == 0 {
		return nil
	}
	addresses, err := netlinksafe.AddrList(nil, netlink.FAMILY_ALL)
	if err != nil {
		return fmt.Errorf("list host addresses: %w", err)
	}
	kept := map[netip.Addr]bool{}
	for _, address := range addresses {
		kept[fromIP(address.IP)] = true
	}
	snapshot := s.objects.snapshot(s.NodeName, local)
	for _, service := range snapshot.platform {
		kept[service] = true
	}
	sources := s.sources(exits, snapshot)
	err = s.each(func(t *table) error {
		family := netlink.InetFamily(t.networks.family().Netlink())
		_, err := netlink.ConntrackDeleteFilters(netlink.ConntrackTable, family, staleFlows{t.networks, sources, kept})
		if err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("delete conntrack entries of projects with egress IPs: %w", err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.exits = exits
	return nil
}

// sources maps pods to the source addresses that this host gives to their packets. It contains only
// the pods of projects that have or had egress addresses.
func (s *enforcement) sources(exits map[string]egressip.Exit, snapshot snapshot) map[netip.Addr]netip.Addr {
	projects := maps.Clone(s.exits)
	if projects == nil {
		projects = map[string]egressip.Exit{}
	}
	maps.Copy(projects, exits)
	sources := map[netip.Addr]netip.Addr{}
	for _, p := range snapshot.pods {
		if _, isAffected := projects[p.namespace]; !isAffected {
			continue
		}
		// If the project no longer has an exit, the source addresses of all its connections are
		// wrong.
		sources[p.address] = netip.Addr{}
		exit, exists := exits[p.namespace]
		family := ipfamily.Of(p.address)
		held := inFamily(family, exit.Held[s.NodeName])
		switch {
		case exists && len(held) > 0 && (exit.Paths[family].Host == s.NodeName || !p.local):
			sources[p.address] = held[0]
		case exists:
			sources[p.address] = p.address // another host translates the address
		}
	}
	return sources
}

// staleFlows matches the conntrack entries of connections whose source address is wrong. It
// implements netlink.CustomConntrackFilter.
type staleFlows struct {
	networks Networks
	// sources maps pods to the source addresses that this host gives to their packets.
	sources map[netip.Addr]netip.Addr
	// kept contains destinations for which the source address is never translated: this host's
	// addresses, and the platform's services.
	kept map[netip.Addr]bool
}

// MatchConntrackFlow implements netlink.CustomConntrackFilter. The kernel deletes the entries for
// which it returns true.
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
