package policy

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"sigs.k8s.io/knftables"
)

// table is the nftables table of a node, in family ip. Each change is one transaction: the kernel
// applies all of it or nothing, so there is no moment without rules.
type table struct {
	nft     knftables.Interface
	current *ruleset // what the kernel has; nil if unknown
}

func openTable(name string) (*table, error) {
	nft, err := knftables.New(knftables.IPv4Family, name)
	if err != nil {
		return nil, fmt.Errorf("open nftables table %q: %w (install the package nftables)", name, err)
	}
	return &table{nft: nft}, nil
}

// apply makes the kernel enforce a ruleset.
func (t *table) apply(ctx context.Context, desired *ruleset) error {
	tx := t.nft.NewTransaction()
	if t.current == nil {
		create(tx)
		update(tx, newRuleset(), desired)
	} else {
		update(tx, t.current, desired)
	}
	if tx.NumOperations() == 0 {
		return nil
	}
	t.current = nil
	if err := t.nft.Run(ctx, tx); err != nil {
		return fmt.Errorf("write nftables table of network policies: %w", err)
	}
	t.current = desired
	return nil
}

// check forgets the content of the table if another program has removed the table, so that the next
// apply creates it.
func (t *table) check(ctx context.Context) error {
	chains, err := t.nft.List(ctx, "chains")
	if err != nil && !knftables.IsNotFound(err) {
		return fmt.Errorf("list nftables chains of network policies: %w", err)
	}
	if !slices.Contains(chains, ingress.String()) || !slices.Contains(chains, egress.String()) {
		t.current = nil
	}
	return nil
}

// Isolation returns a function that reports whether network policies can restrict packets from one
// pod to another, by the table of an Enforcer: it isolates the sender for egress or the receiver
// for ingress.
func Isolation(name string) func(ctx context.Context, from, to netip.Addr) (bool, error) {
	return func(ctx context.Context, from, to netip.Addr) (bool, error) {
		t, err := openTable(name)
		if err != nil {
			return false, err
		}
		for d, address := range map[direction]netip.Addr{egress: from, ingress: to} {
			pods, err := t.nft.ListElements(ctx, "map", d.podMap())
			if err != nil {
				return false, fmt.Errorf("list isolated pods: %w", err)
			}
			if slices.ContainsFunc(pods, func(e *knftables.Element) bool { return e.Key[0] == address.String() }) {
				return true, nil
			}
		}
		return false, nil
	}
}

// create replaces the table with one that contains only the chains at the hook.
//
// Replies pass. All other packets are checked, those of established connections too, so that a
// changed policy also ends connections. The hook sees packets after the translation of service
// addresses to pods, and before the translation of source addresses. It does not see packets
// between a pod and its node, which policies do not restrict.
func create(tx *knftables.Transaction) {
	tx.Add(&knftables.Table{})
	tx.Delete(&knftables.Table{})
	tx.Add(&knftables.Table{Comment: knftables.PtrTo("network policies of pods")})
	tx.Add(&knftables.Set{Name: selfSet, Type: "ipv4_addr . ipv4_addr"})
	// Different priorities define the order of the two checks. A packet must pass both.
	for d, priority := range []knftables.BaseChainPriority{egress: "-2", ingress: "-1"} {
		d := direction(d)
		tx.Add(&knftables.Map{Name: d.podMap(), Type: "ipv4_addr : verdict"})
		tx.Add(&knftables.Chain{
			Name: d.String(), Type: knftables.PtrTo(knftables.FilterType),
			Hook: knftables.PtrTo(knftables.ForwardHook), Priority: &priority,
		})
		for _, rule := range []string{
			"ct state established,related ct direction reply accept",
			"ip saddr . ip daddr @" + selfSet + " accept",
			d.own() + " vmap @" + d.podMap(),
		} {
			tx.Add(&knftables.Rule{Chain: d.String(), Rule: rule})
		}
	}
}

// update changes the content of the table from one ruleset to another. It creates objects before
// rules refer to them, and deletes them when no rule does.
func update(tx *knftables.Transaction, from, to *ruleset) {
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
		for _, rule := range to.chains[name].rules {
			tx.Add(&knftables.Rule{Chain: name, Rule: rule})
		}
	}
	updatePods(tx, from, to)
	removeUnused(tx, from, to)
}

func updateSets(tx *knftables.Transaction, from, to *ruleset) {
	for _, name := range sortedKeys(to.sets) {
		present, exists := from.sets[name]
		if !exists {
			tx.Add(&knftables.Set{Name: name, Type: to.sets[name].kind, Comment: comment(to.sets[name].comment)})
		}
		for _, element := range sortedKeys(to.sets[name].elements) {
			if !present.elements[element] {
				tx.Add(&knftables.Element{Set: name, Key: []string{element}})
			}
		}
		for _, element := range sortedKeys(present.elements) {
			if !to.sets[name].elements[element] {
				tx.Delete(&knftables.Element{Set: name, Key: []string{element}})
			}
		}
	}
}

func updatePods(tx *knftables.Transaction, from, to *ruleset) {
	for _, d := range []direction{egress, ingress} {
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

// removeUnused flushes chains before it deletes any, because chains jump to others.
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
			tx.Delete(&knftables.Set{Name: name})
		}
	}
}

// comment returns a comment that nft accepts, or nil.
func comment(text string) *string {
	if text == "" {
		return nil
	}
	return knftables.PtrTo(text[:min(len(text), knftables.CommentLengthMax)])
}
