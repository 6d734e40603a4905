package policy

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"sigs.k8s.io/knftables"

	"github.com/slipway-platform/slipway/internal/networkplugin"
	"github.com/slipway-platform/slipway/network/cni"
	"github.com/slipway-platform/slipway/network/vxlan"
)

// localSet is the name of a set that contains this node's pods in multitenant mode.
const localSet = "network-pods"

// otherChain is the name of the chain for packets between pods that are not in the same network.
const otherChain = "network-others"

// networkSet returns the name of the set that contains all pods in a network, on all nodes.
func networkSet(id uint32) string { return fmt.Sprintf("network-%d", id) }

// networkChain returns the name of the chain for this node's pods in a network.
func networkChain(d direction, id uint32) string { return fmt.Sprintf("%s-%d", d, id) }

// addNetworks isolates pods in different networks in multitenant mode.
//
// A packet between two pods passes if the pods have the same network ID, or if one of them has ID
// 0. Both pods' nodes check the packet. Each node reads the networks of its own pods without delay,
// and receives the networks of other pods from the API. While a network is changing, a packet
// passes only if both nodes accept it. A pod whose network is unknown can only exchange packets
// with pods in the global network.
//
// Each packet needs two lookups, regardless of the number of projects and pods. A map lookup finds
// the chain for the network of this node's pod. A set lookup then checks whether the other pod's
// address is in that network.
func (c *compiler) addNetworks() {
	if c.plugin != networkplugin.Multitenant {
		return
	}
	c.result.multitenant = true
	c.result.sets[localSet] = set{kind: c.family.Type(), elements: map[string]bool{}}
	c.result.sets[hostSet] = c.hostAddresses().set
	c.network(networkplugin.GlobalID)
	for _, p := range c.pods {
		if p.local {
			c.result.sets[localSet].elements[p.address.String()] = true
		}
		if id, exists := c.netID(p.namespace); exists && p.local {
			c.network(id)
			for _, d := range []direction{source, target} {
				c.result.pods[d][p.address] = networkChain(d, id)
			}
		}
	}
	for _, p := range c.pods {
		id, exists := c.netID(p.namespace)
		if pods, used := c.result.sets[networkSet(id)]; exists && used {
			pods.elements[p.address.String()] = true
		}
	}
}

// netID returns a project's network ID. exists is false until the control plane has assigned an ID.
func (s snapshot) netID(project string) (id uint32, exists bool) {
	id, exists = s.netIDs[project]
	return id, exists
}

// network adds a network's set and chains.
func (c *compiler) network(id uint32) {
	name := networkSet(id)
	if _, exists := c.result.sets[name]; exists {
		return
	}
	c.result.sets[name] = set{kind: c.family.Type(), comment: fmt.Sprintf("pods with network ID %d", id), elements: map[string]bool{}}
	for _, d := range []direction{source, target} {
		rules := []string{"accept"}
		if id != networkplugin.GlobalID {
			peer := d.peer(c.family)
			rules = []string{
				peer + " @" + name + " accept", peer + " @" + networkSet(networkplugin.GlobalID) + " accept",
				"goto " + otherChain,
			}
		}
		c.result.chains[networkChain(d, id)] = chain{rules: rules}
	}
}

// tenantChains returns the base chains for multitenant mode.
//
// Packets from hosts and other machines are not restricted, as in OpenShift 3.11: the router,
// probes and node ports can reach all pods. Nodes send packets through VXLAN from their addresses
// in the pod network. A host that is not a node has a subnet in the pod network; package vxlan
// checks the network IDs of packets from such hosts.
//
// A packet whose source address belongs to one of this node's pods must arrive through the device
// that leads to that pod. Otherwise, other machines could send packets with the addresses of this
// node's pods. On the bridge, package spoofcheck checks the source.
func tenantChains(n Networks) []baseChain {
	family, ip, notBridge := n.family(), n.family().Header(), ""
	if n.Bridge != "" {
		notBridge = fmt.Sprintf("iifname != %q ", n.Bridge)
	}
	return []baseChain{
		{name: "origin", hook: knftables.PreroutingHook, priority: "-301", rules: []string{
			notBridge + ip + " saddr @" + localSet + " fib saddr . iif oif missing counter drop",
		}},
		{name: "network", hook: knftables.ForwardHook, priority: "-4", rules: []string{
			source.own(family) + " vmap @" + source.podMap(), target.own(family) + " vmap @" + target.podMap(), "goto " + otherChain,
		}},
	}
}

// otherRules returns the rules for packets between pods that are not in the same network.
func otherRules(n Networks) []string {
	ip := n.family().Header()
	return []string{
		ip + " saddr != " + literal(n.Pods) + " accept", ip + " daddr != " + literal(n.Pods) + " accept",
		ip + " saddr @" + hostSet + " accept", ip + " daddr @" + hostSet + " accept", "counter drop",
	}
}

// separates reports whether multitenant mode drops packets from a pod to an address.
func (t *table) separates(ctx context.Context, from, to netip.Addr) (bool, error) {
	if !t.networks.isPod(from) || !t.networks.isPod(to) {
		return false, nil
	}
	pods, err := t.nft.ListElements(ctx, "map", source.podMap())
	if knftables.IsNotFound(err) {
		return false, nil // the node is not in multitenant mode
	}
	if err != nil {
		return false, fmt.Errorf("list pod networks: %w", err)
	}
	at := slices.IndexFunc(pods, func(e *knftables.Element) bool { return e.Key[0] == from.String() })
	if at < 0 {
		return true, nil
	}
	id := strings.TrimPrefix(pods[at].Value[0], "goto "+source.String()+"-")
	if id == fmt.Sprint(networkplugin.GlobalID) {
		return false, nil
	}
	for _, name := range []string{"network-" + id, networkSet(networkplugin.GlobalID)} {
		peers, err := t.addresses(ctx, name)
		if err != nil {
			return false, err
		}
		if slices.Contains(peers, to) {
			return false, nil
		}
	}
	return true, nil
}

// remotes returns the network IDs of pods on other nodes, keyed by IPv4 address.
func (o *objects) remotes(node string) map[netip.Addr]uint32 {
	remotes := map[netip.Addr]uint32{}
	for _, object := range o.pods.GetStore().List() {
		p := object.(*cachedPod)
		if id, known := o.netID(p.Namespace); known && p.isRemote(node) && p.address.Is4() {
			remotes[p.address] = id
		}
	}
	return remotes
}

// networks returns a function that returns the network IDs of the projects of this node's pods.
func (e *Enforcer) networks(o *objects) func() (vxlan.Networks, error) {
	return func() (vxlan.Networks, error) {
		local, err := cni.ListPods(e.LeaseDir)
		if err != nil {
			return vxlan.Networks{}, err
		}
		networks := vxlan.Networks{
			Plugin: o.plugin(), Pods: map[netip.Addr]uint32{}, Multicast: len(o.multicastGroups(o.plugin())) > 0,
		}
		if networks.Plugin == networkplugin.Multitenant {
			networks.Remotes = o.remotes(e.NodeName)
		}
		e.addExits(&networks, o.exits(e.monitor.Alive), local)
		for _, pod := range local {
			if id, exists := o.netID(pod.Namespace); exists {
				for _, address := range pod.Addresses() {
					networks.Pods[address] = id
				}
			}
		}
		return networks, nil
	}
}
