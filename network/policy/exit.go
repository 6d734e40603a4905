package policy

import (
	"fmt"
	"log/slog"
	"net/netip"

	networkv1 "github.com/openshift/api/network/v1"
	"sigs.k8s.io/knftables"

	"github.com/slipway-platform/slipway/internal/networkplugin"
	"github.com/slipway-platform/slipway/network/cni"
	"github.com/slipway-platform/slipway/network/egressip"
	"github.com/slipway-platform/slipway/network/ipfamily"
	"github.com/slipway-platform/slipway/network/vxlan"
)

// Names of the sets for projects with egress addresses.
const (
	// exitMarks maps the addresses of this node's pods to their marks.
	exitMarks = "exit-marks"
	// exitAddresses maps marks to the source addresses that projects use on this host.
	exitAddresses = "exit-addresses"
	// exitPairs contains the entries of exitAddresses as a set.
	exitPairs = "exit-pairs"
	// exitHeld contains this host's egress addresses.
	exitHeld = "exit-held"
)

// exitSets returns the sets, without any elements.
func exitSets(f ipfamily.Family) map[string]set {
	return map[string]set{
		exitMarks:     {kind: f.Type() + " : mark", elements: map[string]bool{}},
		exitAddresses: {kind: "mark : " + f.Type(), elements: map[string]bool{}},
		exitPairs:     {kind: "mark . " + f.Type(), elements: map[string]bool{}},
		exitHeld:      {kind: f.Type(), elements: map[string]bool{}},
	}
}

// addExits marks the packets of projects with egress addresses. The mark determines the path on
// which a packet leaves the cluster. If a project has no egress address in the IP family, its
// packets cannot leave the cluster.
func (c *compiler) addExits() {
	if len(c.exits) == 0 {
		return
	}
	c.result.exits = true
	for name, set := range exitSets(c.family) {
		c.result.sets[name] = set
	}
	for _, exit := range c.exits {
		held := inFamily(c.family, exit.Held[c.node])
		for _, address := range held {
			c.result.sets[exitHeld].elements[address.String()] = true
		}
		if len(held) > 0 {
			mark := markText(egressip.Mark(exit.VNI))
			c.result.sets[exitAddresses].elements[mark+" : "+held[0].String()] = true
			c.result.sets[exitPairs].elements[mark+" . "+held[0].String()] = true
		}
	}
	for _, p := range c.pods {
		if exit, exists := c.exits[p.namespace]; exists && p.local {
			c.result.sets[exitMarks].elements[p.address.String()+" : "+markText(c.markOf(exit))] = true
		}
	}
}

// markOf returns the mark for packets that leave the cluster from this node.
func (s snapshot) markOf(exit egressip.Exit) uint32 {
	switch path := exit.Paths[s.family]; {
	case !path.Address.IsValid():
		return egressip.MarkDrop
	case path.Host == s.node:
		return egressip.Mark(exit.VNI)
	}
	return egressip.MarkRemote
}

func markText(mark uint32) string { return fmt.Sprintf("0x%08x", mark) }

// exitChains returns the base chains for projects with egress addresses.
//
// Packets to addresses outside the cluster are marked after service addresses are translated and
// before the node chooses a route. Responses to connections from outside are not marked. The VXLAN
// device's program marks packets from pods on other hosts with their project's mark. The last chain
// drops packets that would leave with another source address, such as packets of connections that
// were opened before a change.
func exitChains(n Networks) []baseChain {
	ip := n.family().Header()
	inside := ip + " daddr " + n.inside()
	has := func(bits uint32) string { return fmt.Sprintf("meta mark and %s != 0", markText(bits)) }
	return []baseChain{
		{name: "exit-guard", hook: knftables.PreroutingHook, priority: "-110", rules: []string{
			"ct state new " + ip + " daddr @" + exitHeld + " counter reject",
		}},
		{name: "exit-mark", hook: knftables.PreroutingHook, priority: "-90", rules: []string{
			replies, inside + " accept",
			"ct status dnat ct original " + ip + " daddr @" + platformSet + " accept",
			"meta mark set " + ip + " saddr map @" + exitMarks,
		}},
		{name: "exit", hook: knftables.ForwardHook, priority: "-5", rules: []string{
			has(egressip.MarkDrop) + " counter drop",
			has(egressip.MarkLocal) + " " + inside + " counter drop",
			fmt.Sprintf("%s oifname != %q counter drop", has(egressip.MarkRemote), n.Tunnel),
		}},
		{name: "exit-address", kind: knftables.NATType, hook: knftables.PostroutingHook, priority: "90", rules: []string{
			has(egressip.MarkLocal) + " snat to meta mark map @" + exitAddresses,
		}},
		{name: "exit-check", hook: knftables.PostroutingHook, priority: "110", rules: []string{
			"meta mark . " + ip + " saddr @" + exitPairs + " accept", has(egressip.MarkLocal) + " counter drop",
		}},
	}
}

// exits returns the exits of projects with egress addresses. It returns nil if the network plugin
// does not isolate projects (networkplugin.Subnet).
func (o *objects) exits(alive func(host string) bool) map[string]egressip.Exit {
	if o.plugin() == networkplugin.Subnet {
		return nil
	}
	var hosts []*networkv1.HostSubnet
	for _, object := range o.hostSubnets.GetStore().List() {
		hosts = append(hosts, object.(*networkv1.HostSubnet))
	}
	var projects []*networkv1.NetNamespace
	for _, object := range o.netNamespaces.GetStore().List() {
		if project := object.(*networkv1.NetNamespace); o.isCurrent(project) {
			projects = append(projects, project)
		}
	}
	return egressip.Assign(hosts, projects, alive)
}

// hostsOf returns the hosts of projects that use more than one host. It maps the hosts' names to
// their addresses in the pod network.
func (o *objects) hostsOf(exits map[string]egressip.Exit) map[string]netip.Addr {
	hosts := map[string]netip.Addr{}
	for _, exit := range exits {
		for name := range exit.Held {
			object, exists, err := o.hostSubnets.GetStore().GetByKey(name)
			if err != nil || !exists || len(exit.Held) < 2 {
				continue
			}
			if subnet, err := netip.ParsePrefix(object.(*networkv1.HostSubnet).Subnet); err == nil {
				hosts[name] = cni.Gateway(subnet)
			}
		}
	}
	return hosts
}

// addExits adds two kinds of entries to networks. Exits contains the other hosts at which packets
// from this node's pods leave the cluster. Gates contains the marks of projects whose packets leave
// the cluster at this node.
func (e *Enforcer) addExits(networks *vxlan.Networks, exits map[string]egressip.Exit, local []cni.Pod) {
	networks.Exits, networks.Gates = map[netip.Addr]vxlan.Exit{}, map[uint32]uint32{}
	for _, exit := range exits {
		if len(exit.Held[e.NodeName]) > 0 {
			networks.Gates[exit.VNI] = egressip.Mark(exit.VNI)
		}
	}
	for _, pod := range local {
		exit := exits[pod.Namespace]
		for _, address := range pod.Addresses() {
			if path := exit.Paths[ipfamily.Of(address)]; path.Address.IsValid() && path.Host != e.NodeName {
				networks.Exits[address] = vxlan.Exit{Host: path.HostAddress, VNI: exit.VNI}
			}
		}
	}
}

// release removes the routing rule of each IP family in which no project has egress addresses. Call
// it only after the tables have been written, because the previous tables might mark packets for
// the rule.
func (s *enforcement) release(exits map[string]egressip.Exit) {
	for _, t := range s.tables {
		if family := t.networks.family(); !leaves(exits, family) {
			if err := egressip.RemoveRule(family); err != nil {
				slog.Error("cannot remove the routing rule of egress IPs; route lookups remain slower", "error", err)
			}
		}
	}
}

// leaves reports whether any project has an egress address in an IP family.
func leaves(exits map[string]egressip.Exit, family ipfamily.Family) bool {
	for _, exit := range exits {
		if exit.Paths[family].Address.IsValid() {
			return true
		}
	}
	return false
}

// hold assigns this host's egress addresses to its device, and makes the host route packets to the
// hosts of other egress addresses.
func (s *enforcement) hold(exits map[string]egressip.Exit) error {
	for _, t := range s.tables {
		if family := t.networks.family(); leaves(exits, family) {
			if err := egressip.EnsureRule(family); err != nil {
				return err
			}
		}
	}
	object, exists, err := s.objects.hostSubnets.GetStore().GetByKey(s.NodeName)
	if err != nil || !exists {
		return nil //nolint:nilerr // the control plane has not created the HostSubnet yet
	}
	node, err := netip.ParseAddr(object.(*networkv1.HostSubnet).HostIP)
	if err != nil {
		return nil //nolint:nilerr // unreachable, because the API server validates the address
	}
	var addresses []netip.Addr
	for _, t := range s.tables {
		for _, exit := range exits {
			addresses = append(addresses, inFamily(t.networks.family(), exit.Held[s.NodeName])...)
		}
	}
	return egressip.Hold(node, addresses)
}
