// Package adminchain maintains the chain in which administrators write iptables rules for pod
// traffic that leaves the cluster:
//
//	FORWARD ── from the bridge, not to it, not to pods ── jump OPENSHIFT-ADMIN-OUTPUT-RULES
//
// If there are several pod networks, FORWARD jumps to the SLIPWAY-POD-OUTPUT chain. This chain
// returns to FORWARD for packets to pods, and jumps to the administrators' chain for all other
// packets. The additional chain is necessary because an iptables rule can exclude only one network,
// and iptables does not support nftables sets.
//
// The chain is in the iptables table `filter`, which iptables stores in nftables. The package
// creates the chain once and never changes its rules. The rule that jumps to the chain is the first
// rule of FORWARD. If a rule in the chain drops a packet, the verdict is final. A rule that accepts
// a packet skips only the remaining rules of FORWARD, not the tables of other packages.
//
// Source: OpenShift Container Platform 3.11 Cluster Administration, Using iptables Rules to Limit
// Access to External Resources.
package adminchain

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"net/netip"
	"os/exec"
	"slices"
	"strings"

	"sigs.k8s.io/knftables"

	"github.com/slipway-platform/slipway/network/ipfamily"
)

// Name is the name of the administrators' chain.
const Name = "OPENSHIFT-ADMIN-OUTPUT-RULES"

// separator is the name of the chain that separates packets to pods from other packets.
const separator = "SLIPWAY-POD-OUTPUT"

// Names of iptables objects. iptables requires these names.
const (
	table   = "filter"
	forward = "FORWARD"
)

// mark is the prefix of the comment that identifies the rule that jumps to the chain.
const mark = "slipway:"

// Ensure creates the chain and the rule that jumps to it for packets from the bridge to
// destinations other than pods. It keeps existing rules in the chain. The IP family of the pod
// network determines whether the chain belongs to iptables or to ip6tables. Ensure requires the nft
// program.
func Ensure(ctx context.Context, bridge string, pods []netip.Prefix) error {
	family := ipfamily.Of(pods[0].Addr())
	nft, err := knftables.New(family.Table(), table)
	if err != nil {
		return fmt.Errorf("open iptables table %q: %w; install the package nftables", table, err)
	}
	chains, err := names(ctx, nft)
	if err != nil {
		return err
	}
	tx := nft.NewTransaction()
	tx.Add(&knftables.Table{})
	if !slices.Contains(chains, forward) {
		tx.Add(&knftables.Chain{
			Name: forward, Type: knftables.PtrTo(knftables.FilterType), Hook: knftables.PtrTo(knftables.ForwardHook),
			Priority: knftables.PtrTo(knftables.BaseChainPriority("0")), Policy: knftables.PtrTo(knftables.AcceptPolicy),
		})
	}
	if !slices.Contains(chains, Name) {
		tx.Add(&knftables.Chain{Name: Name})
	}
	comment := fmt.Sprintf("%s from %s to outside of %s", mark, bridge, describe(pods))
	jumps, err := jumpsTo(ctx, nft, chains)
	if err != nil {
		return err
	}
	if len(jumps) == 1 && *jumps[0].Comment == comment && slices.Contains(chains, Name) {
		return nil
	}
	for _, jump := range jumps {
		tx.Delete(jump)
	}
	removeSeparator(tx, chains)
	rule := fmt.Sprintf("iifname %q oifname != %q ", bridge, bridge)
	if len(pods) == 1 {
		rule += fmt.Sprintf("%s daddr != %s counter jump %s", family.Header(), pods[0].Masked(), Name)
	} else {
		addSeparator(tx, family, pods)
		rule += "counter jump " + separator
	}
	tx.Insert(&knftables.Rule{Chain: forward, Rule: rule, Comment: &comment})
	if err := nft.Run(ctx, tx); err != nil {
		return fmt.Errorf("write iptables chain %s: %w", Name, err)
	}
	return nil
}

// describe returns a short string that identifies a list of networks. The string is part of a
// rule's comment, whose length nftables limits.
func describe(networks []netip.Prefix) string {
	if len(networks) == 1 {
		return networks[0].Masked().String()
	}
	return fmt.Sprintf("%d networks (%08x)", len(networks), crc32.ChecksumIEEE(fmt.Append(nil, networks)))
}

// addSeparator adds the chain that separates packets to pods from other packets.
func addSeparator(tx *knftables.Transaction, family ipfamily.Family, pods []netip.Prefix) {
	tx.Add(&knftables.Chain{Name: separator})
	for _, network := range pods {
		tx.Add(&knftables.Rule{Chain: separator, Rule: fmt.Sprintf("%s daddr %s counter return", family.Header(), network.Masked())})
	}
	tx.Add(&knftables.Rule{Chain: separator, Rule: "counter jump " + Name})
}

// removeSeparator removes the chain that addSeparator adds, if it exists.
func removeSeparator(tx *knftables.Transaction, chains []string) {
	if slices.Contains(chains, separator) {
		tx.Flush(&knftables.Chain{Name: separator})
		tx.Delete(&knftables.Chain{Name: separator})
	}
}

// Remove removes the chain and the rule that jumps to it. Unless withRules is true, it keeps a
// chain that has rules. It also removes FORWARD and the table if they no longer have any rules.
// Remove is a no-op on a host without the nft program.
func Remove(ctx context.Context, withRules bool) error {
	return errors.Join(removeFrom(ctx, ipfamily.IPv4, withRules), removeFrom(ctx, ipfamily.IPv6, withRules))
}

// removeFrom implements Remove for one IP family.
func removeFrom(ctx context.Context, family ipfamily.Family, withRules bool) error {
	nft, err := knftables.New(family.Table(), table)
	if errors.Is(err, exec.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open iptables table %q: %w", table, err)
	}
	chains, err := names(ctx, nft)
	if err != nil || len(chains) == 0 {
		return err
	}
	jumps, err := jumpsTo(ctx, nft, chains)
	if err != nil {
		return err
	}
	tx := nft.NewTransaction()
	for _, jump := range jumps {
		tx.Delete(jump)
	}
	removeSeparator(tx, chains)
	if slices.Contains(chains, Name) {
		rules, err := nft.ListRules(ctx, Name)
		if err != nil {
			return fmt.Errorf("list rules of iptables chain %s: %w", Name, err)
		}
		if len(rules) == 0 || withRules {
			tx.Flush(&knftables.Chain{Name: Name})
			tx.Delete(&knftables.Chain{Name: Name})
		}
	}
	if tx.NumOperations() > 0 {
		if err := nft.Run(ctx, tx); err != nil {
			return fmt.Errorf("remove iptables chain %s: %w", Name, err)
		}
	}
	if tx.NumOperations() == 0 && family == ipfamily.IPv6 {
		return nil // the table belongs to another program
	}
	return removeEmpty(ctx, nft, family)
}

// removeEmpty removes the table if all of its chains have no rules and accept all packets. iptables
// creates the table and its chains again when it needs them.
func removeEmpty(ctx context.Context, nft knftables.Interface, family ipfamily.Family) error {
	chains, err := names(ctx, nft)
	if err != nil || len(chains) == 0 {
		return err
	}
	content, err := exec.CommandContext(ctx, "nft", "list", "table", family.Header(), table).Output()
	if err != nil {
		return fmt.Errorf("list iptables table %q: %w", table, err)
	}
	for line := range strings.Lines(string(content)) {
		line = strings.TrimSpace(line)
		begins := strings.HasPrefix(line, "table ") || strings.HasPrefix(line, "chain ")
		isBase := strings.HasPrefix(line, "type filter hook ") && strings.HasSuffix(line, "policy accept;")
		if line != "" && line != "}" && !begins && !isBase {
			return nil
		}
	}
	tx := nft.NewTransaction()
	tx.Delete(&knftables.Table{})
	if err := nft.Run(ctx, tx); err != nil {
		return fmt.Errorf("remove iptables table %q: %w", table, err)
	}
	return nil
}

// names returns the names of the table's chains, or nil if the table does not exist.
func names(ctx context.Context, nft knftables.Interface) ([]string, error) {
	chains, err := nft.List(ctx, "chains")
	if err != nil && !knftables.IsNotFound(err) {
		return nil, fmt.Errorf("list iptables chains: %w", err)
	}
	return chains, nil
}

// jumpsTo returns the rules of FORWARD that jump to the chain.
func jumpsTo(ctx context.Context, nft knftables.Interface, chains []string) ([]*knftables.Rule, error) {
	if !slices.Contains(chains, forward) {
		return nil, nil
	}
	rules, err := nft.ListRules(ctx, forward)
	if err != nil {
		return nil, fmt.Errorf("list rules of iptables chain %s: %w", forward, err)
	}
	return slices.DeleteFunc(rules, func(r *knftables.Rule) bool { return r.Comment == nil || !strings.HasPrefix(*r.Comment, mark) }), nil
}
