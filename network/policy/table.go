package policy

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"sigs.k8s.io/knftables"

	"github.com/slipway-platform/slipway/network/ipfamily"
)

// table is a node's nftables table for an IP family. The kernel applies each transaction
// atomically, and each change is one transaction, so the rules are in effect at all times.
type table struct {
	nft      knftables.Interface
	networks Networks
	current  *ruleset // the state in the kernel; nil if unknown
}

// Networks contains a cluster's networks in an IP family. All other addresses are external.
type Networks struct {
	Pods     []netip.Prefix // at least one network
	Services netip.Prefix
	// Tunnel is the name of the device through which other hosts are reached.
	Tunnel string
	// Bridge is the name of the device that leads to this node's pods; optional.
	Bridge string
}

// family returns the IP family of the networks.
func (n Networks) family() ipfamily.Family { return ipfamily.Of(n.Pods[0].Addr()) }

// isPod reports whether an address is in a pod network.
func (n Networks) isPod(address netip.Addr) bool {
	return slices.ContainsFunc(n.Pods, func(pods netip.Prefix) bool { return pods.Contains(address) })
}

// inside returns the pod and service networks as an nftables set.
func (n Networks) inside() string { return literal(append(slices.Clip(n.Pods), n.Services)) }

func openTable(name string, networks Networks) (*table, error) {
	nft, err := knftables.New(networks.family().Table(), name)
	if err != nil {
		return nil, fmt.Errorf("open nftables table %q: %w; install the package nftables", name, err)
	}
	return &table{nft: nft, networks: networks}, nil
}

// apply makes the kernel enforce a ruleset.
func (t *table) apply(ctx context.Context, desired *ruleset) error {
	tx := t.nft.NewTransaction()
	if t.current == nil || t.current.multitenant != desired.multitenant || t.current.exits != desired.exits {
		create(tx, t.networks, desired)
		update(tx, t.networks, nil, desired)
	} else {
		update(tx, t.networks, t.current, desired)
	}
	if tx.NumOperations() == 0 {
		return nil
	}
	t.current = nil
	if err := t.nft.Run(ctx, tx); err != nil {
		return fmt.Errorf("write network policy nftables table: %w", err)
	}
	t.current = desired
	return nil
}

// check discards the recorded state if another program has removed the table or its chains, so that
// the next apply creates the table again.
func (t *table) check(ctx context.Context) error {
	chains, err := t.nft.List(ctx, "chains")
	if knftables.IsNotFound(err) {
		t.current = nil
		return nil
	}
	if err != nil {
		return fmt.Errorf("list network policy nftables chains: %w", err)
	}
	if t.current == nil {
		return nil
	}
	for _, chain := range baseChains(t.networks, t.current) {
		if !slices.Contains(chains, chain.name) {
			t.current = nil
			return nil
		}
	}
	return nil
}

// addresses returns the elements of a set of addresses, or nil if the set does not exist.
func (t *table) addresses(ctx context.Context, set string) (addresses []netip.Addr, err error) {
	elements, err := t.nft.ListElements(ctx, "set", set)
	if err != nil && !knftables.IsNotFound(err) {
		return nil, fmt.Errorf("list nftables set %q: %w", set, err)
	}
	for _, element := range elements {
		if address, err := netip.ParseAddr(element.Key[0]); err == nil {
			addresses = append(addresses, address)
		}
	}
	return addresses, nil
}

// Isolation returns a function that reports whether network policies, egress firewalls or network
// isolation between projects can restrict packets from a pod to an address, or whether the packets
// need an egress address. The function reads an Enforcer's table.
func Isolation(name string, networks Networks) func(ctx context.Context, from, to netip.Addr) (bool, error) {
	return func(ctx context.Context, from, to netip.Addr) (bool, error) {
		t, err := openTable(name, networks)
		if err != nil {
			return false, err
		}
		if separate, err := t.separates(ctx, from, to); err != nil || separate {
			return separate, err
		}
		maps := []string{egress.podMap()}
		if !networks.isPod(to) {
			maps = append(maps, external.podMap(), exitMarks)
		} else if closed, err := t.isolates(ctx, to); err != nil || closed {
			return closed, err
		}
		for _, name := range maps {
			pods, err := t.nft.ListElements(ctx, "map", name)
			if name == exitMarks && knftables.IsNotFound(err) {
				continue // no project has egress addresses
			}
			if err != nil {
				return false, fmt.Errorf("list isolated pods: %w", err)
			}
			if slices.ContainsFunc(pods, func(e *knftables.Element) bool { return e.Key[0] == from.String() }) {
				return true, nil
			}
		}
		return false, nil
	}
}

// isolates reports whether network policies can restrict packets to a pod. For a pod on another
// node, it returns true. This node does not have the rules for that pod, and the pod's node would
// accept the packets, because they come from a host.
func (t *table) isolates(ctx context.Context, pod netip.Addr) (bool, error) {
	open, err := t.nft.ListElements(ctx, "set", openSet)
	if knftables.IsNotFound(err) {
		return false, nil // the cluster has no network policies
	}
	if err != nil {
		return false, fmt.Errorf("list pods that are not isolated: %w", err)
	}
	return !slices.ContainsFunc(open, func(e *knftables.Element) bool { return e.Key[0] == pod.String() }), nil
}

// baseChain is a chain at a hook. At each hook, the priorities define the order of the chains. A
// packet must pass all of them.
type baseChain struct {
	name     string
	hook     knftables.BaseChainHook
	priority knftables.BaseChainPriority
	rules    []string
	kind     knftables.BaseChainType // FilterType by default
}

// replies matches packets that no policy checks.
//
// All other packets are checked, including packets of established connections. Therefore, a change
// to a policy can also end open connections.
const replies = "ct state established,related ct direction reply accept"

// self matches the packets of an isolated pod to itself.
func self(n Networks) string {
	ip := n.family().Header()
	return ip + " saddr . " + ip + " daddr @" + selfSet + " accept"
}

// baseChains returns the chains at the hooks. Each chain slows down every packet on the node, so a
// chain exists only while a pod on the node needs it. A chain first looks up the pod, so that the
// packets of all other pods need only one lookup.
//
// At the forward hook, the addresses of services have already been translated to pods, but source
// addresses have not been translated. Packets between a pod and its node do not pass this hook.
// Network policies do not restrict these packets, but egress firewalls do, except for DNS and
// services.
func baseChains(n Networks, r *ruleset) []baseChain {
	family, ip := n.family(), n.family().Header()
	pod := func(d direction) string { return d.own(family) + " vmap @" + d.podMap() }
	// This chain makes the kernel track all connections, so that the kernel already has the
	// direction of a connection when a policy is added later. The kernel calls a NAT chain only for
	// the first packet of a connection.
	chains := []baseChain{{name: "track", kind: knftables.NATType, hook: knftables.PreroutingHook, priority: "-149", rules: []string{"ct state new accept"}}}
	if len(r.pods[external]) > 0 {
		chains = append(chains,
			baseChain{name: external.String(), hook: knftables.ForwardHook, priority: "-3", rules: []string{
				ip + " daddr != @" + gatewaySet + " " + ip + " daddr " + n.inside() + " accept", replies,
				"ct status dnat ct original " + ip + " daddr @" + platformSet + " accept", pod(external),
			}},
			baseChain{name: "node", hook: knftables.InputHook, priority: "-1", rules: []string{
				replies, "meta l4proto { tcp, udp } th dport 53 accept",
				"ct status dnat ct original " + ip + " daddr " + n.Services.String() + " accept", pod(external),
			}},
		)
	}
	if len(r.pods[egress]) > 0 {
		chains = append(chains, baseChain{name: egress.String(), hook: knftables.ForwardHook, priority: "-2", rules: []string{pod(egress)}})
	}
	if len(r.pods[ingress]) > 0 {
		chains = append(chains, baseChain{name: ingress.String(), hook: knftables.ForwardHook, priority: "-1", rules: []string{pod(ingress)}})
	}
	if r.multitenant {
		chains = append(chains, tenantChains(n)...)
	}
	if r.exits {
		chains = append(chains, exitChains(n)...)
	}
	return chains
}

// create replaces the table. The new table contains only the objects that base chains refer to.
func create(tx *knftables.Transaction, n Networks, desired *ruleset) {
	tx.Add(&knftables.Table{})
	tx.Delete(&knftables.Table{})
	tx.Add(&knftables.Table{Comment: knftables.PtrTo("network policies of pods")})
	family := n.family()
	empty := newRuleset(family).sets
	for _, name := range sortedKeys(empty) {
		tx.Add(&knftables.Set{Name: name, Type: empty[name].kind})
	}
	if desired.multitenant {
		for _, name := range []string{localSet, hostSet} {
			tx.Add(desired.sets[name].object(name))
		}
		tx.Add(&knftables.Chain{Name: otherChain})
		for _, rule := range otherRules(n) {
			tx.Add(&knftables.Rule{Chain: otherChain, Rule: rule})
		}
	}
	if desired.exits {
		sets := exitSets(family)
		for _, name := range sortedKeys(sets) {
			tx.Add(sets[name].object(name))
		}
	}
	for _, d := range desired.directions() {
		tx.Add(&knftables.Map{Name: d.podMap(), Type: family.Type() + " : verdict"})
	}
}

// update changes the content of the table from one ruleset to another. It creates objects before
// rules refer to them, and deletes objects when no rule refers to them anymore.
//
// from is nil if the table is new.
func update(tx *knftables.Transaction, n Networks, from, to *ruleset) {
	var present []baseChain
	if from == nil {
		from = newRuleset(n.family())
	} else {
		present = baseChains(n, from)
	}
	updateSets(tx, from, to)
	for _, name := range sortedKeys(to.chains) {
		if _, exists := from.chains[name]; !exists {
			tx.Add(&knftables.Chain{Name: name, Comment: comment(to.chains[name].comment)})
		}
	}
	for _, name := range sortedKeys(to.chains) {
		if present, exists := from.chains[name]; exists && present.equal(to.chains[name]) {
			continue
		}
		tx.Flush(&knftables.Chain{Name: name})
		var exemptions []string
		if to.chains[name].exempt {
			exemptions = []string{replies, self(n)}
		}
		for _, rule := range slices.Concat(exemptions, to.chains[name].rules) {
			tx.Add(&knftables.Rule{Chain: name, Rule: rule})
		}
	}
	updatePods(tx, from, to)
	updateBaseChains(tx, present, baseChains(n, to))
	removeUnused(tx, from, to)
}

// updateBaseChains adds and deletes base chains. A base chain's rules never change.
func updateBaseChains(tx *knftables.Transaction, from, to []baseChain) {
	contains := func(chains []baseChain, name string) bool {
		return slices.ContainsFunc(chains, func(c baseChain) bool { return c.name == name })
	}
	for _, chain := range to {
		if contains(from, chain.name) {
			continue
		}
		tx.Add(&knftables.Chain{
			Name: chain.name, Type: knftables.PtrTo(cmp.Or(chain.kind, knftables.FilterType)), Hook: &chain.hook, Priority: &chain.priority,
		})
		for _, rule := range chain.rules {
			tx.Add(&knftables.Rule{Chain: chain.name, Rule: rule})
		}
	}
	for _, chain := range from {
		if !contains(to, chain.name) {
			tx.Flush(&knftables.Chain{Name: chain.name})
			tx.Delete(&knftables.Chain{Name: chain.name})
		}
	}
}

func updateSets(tx *knftables.Transaction, from, to *ruleset) {
	for _, name := range sortedKeys(to.sets) {
		present, exists := from.sets[name]
		if !exists {
			tx.Add(to.sets[name].object(name))
		}
		// The networks in a set must not overlap, so deletions come first.
		for _, element := range sortedKeys(present.elements) {
			if !to.sets[name].elements[element] {
				tx.Delete(present.element(name, element))
			}
		}
		for _, element := range sortedKeys(to.sets[name].elements) {
			if !present.elements[element] {
				tx.Add(to.sets[name].element(name, element))
			}
		}
	}
}

// object returns the set or map as an nftables object.
func (s set) object(name string) knftables.Object {
	if strings.Contains(s.kind, ":") {
		return &knftables.Map{Name: name, Type: s.kind, Comment: comment(s.comment)}
	}
	object := &knftables.Set{Name: name, Type: s.kind, Comment: comment(s.comment)}
	if s.interval {
		object.Flags = []knftables.SetFlag{knftables.IntervalFlag}
	}
	return object
}

// element returns one of the set's or map's elements as an nftables object.
func (s set) element(name, text string) *knftables.Element {
	if key, value, isMap := strings.Cut(text, " : "); isMap {
		return &knftables.Element{Map: name, Key: []string{key}, Value: []string{value}}
	}
	return &knftables.Element{Set: name, Key: []string{text}}
}

func updatePods(tx *knftables.Transaction, from, to *ruleset) {
	for _, d := range to.directions() {
		before, after := from.pods[d], to.pods[d]
		for address, chain := range before {
			if after[address] != chain {
				tx.Delete(&knftables.Element{Map: d.podMap(), Key: []string{address.String()}})
			}
		}
		for address, chain := range after {
			if before[address] != chain {
				tx.Add(&knftables.Element{Map: d.podMap(), Key: []string{address.String()}, Value: []string{"goto " + chain}})
			}
		}
	}
}

// removeUnused flushes all unused chains before it deletes any of them, because chains jump to
// other chains.
func removeUnused(tx *knftables.Transaction, from, to *ruleset) {
	unused := maps.Clone(from.chains)
	maps.DeleteFunc(unused, func(name string, _ chain) bool { _, used := to.chains[name]; return used })
	for _, name := range sortedKeys(unused) {
		tx.Flush(&knftables.Chain{Name: name})
	}
	for _, name := range sortedKeys(unused) {
		tx.Delete(&knftables.Chain{Name: name})
	}
	for _, name := range sortedKeys(from.sets) {
		if _, used := to.sets[name]; !used {
			tx.Delete(from.sets[name].object(name))
		}
	}
}

// comment returns text as a comment that nft accepts, or nil if text is empty.
func comment(text string) *string {
	if text == "" {
		return nil
	}
	return knftables.PtrTo(text[:min(len(text), knftables.CommentLengthMax)])
}
