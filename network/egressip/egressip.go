// Package egressip assigns fixed source addresses to the traffic that projects send to addresses
// outside the cluster. NetNamespaces contain the projects' addresses, and HostSubnets contain the
// hosts' addresses.
//
//	pod ── its node ── VXLAN with the project's network ID ── host with the address ── outside
//	         │                                                  │
//	    Assign: which host                                source address
//
// Each IP family has its own path. If a project has egress addresses in only one family, its
// packets in the other family are dropped.
//
// The package decides which address a project uses (Assign), keeps this host's egress addresses on
// its device (Hold), and determines which hosts respond (Monitor). Package network/policy contains
// the packet rules, and package network/vxlan implements the path between hosts.
//
// Source: OpenShift Container Platform 3.11 Cluster Administration, Enabling Static IPs for
// External Project Traffic.
package egressip

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	networkv1 "github.com/openshift/api/network/v1"

	"github.com/slipway-platform/slipway/internal/dualstack"
	"github.com/slipway-platform/slipway/internal/networkplugin"
	"github.com/slipway-platform/slipway/network/ipfamily"
)

// Exit describes how a project's packets leave the cluster.
type Exit struct {
	// VNI is the project's network ID.
	VNI uint32
	// Paths contains the paths to addresses outside the cluster, indexed by ipfamily.Family.
	Paths [2]Path
	// Held maps the names of hosts to the project's usable addresses that are assigned to them, in
	// the order of the project's list.
	Held map[string][]netip.Addr
	// Problem lists the addresses that cannot be used, with the reasons.
	Problem string
}

// Path is the path that a project's packets in one IP family take to addresses outside the
// cluster.
type Path struct {
	// Address is the source address. It is invalid if all packets are dropped.
	Address netip.Addr
	// Host is the name of the host to which the source address is assigned, and HostAddress is the
	// host's IPv4 address.
	Host        string
	HostAddress netip.Addr
}

// Assign returns the exits of all projects with egress addresses. alive reports whether a host
// responds. In each IP family, a project uses the first of its usable addresses whose host
// responds, or its first usable address if no host responds. If a project has no usable address in
// a family, its packets in this family are dropped, so that they never have another source address.
func Assign(hosts []*networkv1.HostSubnet, projects []*networkv1.NetNamespace, alive func(host string) bool) map[string]Exit {
	a := assignment{hosts: hosts, owners: map[netip.Addr][]*networkv1.HostSubnet{}, users: map[netip.Addr][]string{}, nodes: map[netip.Addr]string{}, networks: map[uint32][]string{}}
	for _, host := range hosts {
		for _, address := range HostAddresses(host) {
			a.nodes[address] = host.Name
		}
		for _, address := range Addresses(host.EgressIPs) {
			a.owners[address] = append(a.owners[address], host)
		}
	}
	for _, project := range projects {
		a.networks[project.NetID] = append(a.networks[project.NetID], project.Name)
		for _, address := range Addresses(project.EgressIPs) {
			a.users[address] = append(a.users[address], project.Name)
		}
	}
	exits := map[string]Exit{}
	for _, project := range projects {
		if len(project.EgressIPs) > 0 {
			exits[project.Name] = a.exit(project, alive)
		}
	}
	return exits
}

// assignment indexes the objects by address.
type assignment struct {
	hosts    []*networkv1.HostSubnet
	owners   map[netip.Addr][]*networkv1.HostSubnet
	users    map[netip.Addr][]string
	nodes    map[netip.Addr]string
	networks map[uint32][]string
}

func (a assignment) exit(project *networkv1.NetNamespace, alive func(host string) bool) Exit {
	exit := Exit{VNI: project.NetID, Held: map[string][]netip.Addr{}}
	if sharing := a.networks[project.NetID]; project.NetID == networkplugin.GlobalID || len(sharing) > 1 {
		exit.Problem = fmt.Sprintf("project %q shares its network with other projects, so all its external traffic is dropped; "+
			"isolate the project or remove its egressIPs", project.Name)
		return exit
	}
	var problems []string
	var requested, isAlive [2]bool
	for _, address := range Addresses(project.EgressIPs) {
		family := ipfamily.Of(address)
		requested[family] = true
		if problem := a.problem(address, project); problem != "" {
			problems = append(problems, problem)
			continue
		}
		owner := a.owners[address][0]
		hostAddress, err := netip.ParseAddr(owner.HostIP)
		if err != nil {
			continue
		}
		exit.Held[owner.Name] = append(exit.Held[owner.Name], address)
		if responds := alive(owner.Name); !exit.Paths[family].Address.IsValid() || responds && !isAlive[family] {
			exit.Paths[family], isAlive[family] = Path{address, owner.Name, hostAddress}, responds
		}
	}
	ipv4, ipv6 := exit.Paths[ipfamily.IPv4].Address.IsValid(), exit.Paths[ipfamily.IPv6].Address.IsValid()
	switch {
	case !ipv4 && !ipv6:
		problems = append(problems, fmt.Sprintf("all external traffic of project %q is dropped", project.Name))
	case requested[ipfamily.IPv4] && !ipv4:
		problems = append(problems, fmt.Sprintf("all external IPv4 traffic of project %q is dropped", project.Name))
	case requested[ipfamily.IPv6] && !ipv6:
		problems = append(problems, fmt.Sprintf("all external IPv6 traffic of project %q is dropped", project.Name))
	}
	exit.Problem = strings.Join(problems, "; ")
	return exit
}

// problem returns the reason why a project cannot use an address, or "" if it can.
func (a assignment) problem(address netip.Addr, project *networkv1.NetNamespace) string {
	owners := a.owners[address]
	if node, isNode := a.nodes[address]; isNode {
		return fmt.Sprintf("egress IP %s is the address of node %q", address, node)
	}
	if users := a.users[address]; len(users) > 1 {
		return fmt.Sprintf("egress IP %s belongs to several projects (%s)", address, names(users))
	}
	switch len(owners) {
	case 0:
		if len(InFamily(project.EgressIPs, ipfamily.Of(address))) > 1 && a.isAutomatic(address) {
			return fmt.Sprintf("egress IP %s is in the egressCIDRs of hosts, which assign it only to a project with a single egress IP in its IP family", address)
		}
		return fmt.Sprintf("no HostSubnet has egress IP %s", address)
	case 1:
		return ""
	}
	var hosts []string
	for _, owner := range owners {
		hosts = append(hosts, owner.Name)
	}
	return fmt.Sprintf("egress IP %s belongs to several hosts (%s)", address, names(hosts))
}

// isAutomatic reports whether an address is in the egressCIDRs of a host.
func (a assignment) isAutomatic(address netip.Addr) bool {
	for _, host := range a.hosts {
		for _, text := range host.EgressCIDRs {
			if cidr, err := netip.ParsePrefix(string(text)); err == nil && cidr.Contains(address) {
				return true
			}
		}
	}
	return false
}

// Addresses returns the distinct addresses in a list. It omits strings that are not valid host
// addresses, such as link-local IPv6 addresses.
func Addresses[T ~string](texts []T) (list []netip.Addr) {
	for _, text := range texts {
		address, err := netip.ParseAddr(string(text))
		if err == nil && isHostAddress(address) && !slices.Contains(list, address) {
			list = append(list, address)
		}
	}
	return list
}

// isHostAddress reports whether an address is an IPv4 address, or an IPv6 address that is valid on
// more than one link. An IPv4-mapped IPv6 address is not a host address.
func isHostAddress(address netip.Addr) bool {
	return address.Is4() || address.IsGlobalUnicast() && !address.Is4In6() && address.Zone() == ""
}

// InFamily returns the distinct addresses in a list that have the given IP family.
func InFamily[T ~string](texts []T, family ipfamily.Family) []netip.Addr {
	return slices.DeleteFunc(Addresses(texts), func(a netip.Addr) bool { return ipfamily.Of(a) != family })
}

// HostAddresses returns the addresses at which other hosts reach a host.
func HostAddresses(host *networkv1.HostSubnet) []netip.Addr {
	return Addresses([]string{host.HostIP, host.Annotations[dualstack.HostAnnotation]})
}

func names(list []string) string { return strings.Join(slices.Sorted(slices.Values(list)), ", ") }

// Marks for packets that leave the cluster. They do not use the bit that kube-proxy uses (0x4000).
const (
	// MarkMask selects the bits that determine how a packet leaves the node.
	MarkMask uint32 = 0x70000000
	// MarkRemote means that the packet is sent through VXLAN to another host, and leaves the
	// cluster there.
	MarkRemote uint32 = 0x10000000
	// MarkLocal means that the packet leaves with an address of this host. The remaining bits
	// contain the network ID.
	MarkLocal uint32 = 0x20000000
	// MarkDrop means that the packet is dropped, because the project has no usable address.
	MarkDrop uint32 = 0x40000000
)

// Mark returns the mark of a project's packets that leave the cluster through this host.
func Mark(vni uint32) uint32 {
	const proxy = 1 << 14
	mark := MarkLocal | vni&^proxy
	if vni&proxy != 0 {
		mark |= 1 << 24
	}
	return mark
}
