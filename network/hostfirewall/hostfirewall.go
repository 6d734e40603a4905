// Package hostfirewall lets pod traffic pass the host's own firewall.
//
// Docker and ufw set the policy of the iptables FORWARD chain to drop, and ufw also sets the policy
// of INPUT. An accept verdict in another nftables table does not override a drop verdict in these
// chains. Therefore, as long as a chain's policy is drop, the package keeps accept rules at the end
// of the chain:
//
//	FORWARD ── from or to the bridge ── accept
//	INPUT ── from the bridge, to the DNS server or to a port of the platform ── accept
//
// Rules of the administrator, of Docker and of ufw precede these rules and therefore take
// precedence. The chains are in the table `filter`, which iptables stores in nftables. Firewalls
// with tables of their own, such as firewalld, are not supported.
package hostfirewall

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/knftables"

	"github.com/slipway-platform/slipway/network/ipfamily"
)

// Exceptions describes the packets that pass the firewall.
type Exceptions struct {
	// Bridge is the bridge for pods. Packets that are forwarded from or to it pass.
	Bridge string
	// DNSAddress is the address of the pods' DNS server on this host; optional.
	DNSAddress netip.Addr
	// Ports lists the TCP ports of this host to which pods connect.
	Ports []int
}

// Names of iptables objects.
const (
	table   = "filter"
	forward = "FORWARD"
	input   = "INPUT"
)

// comment is the comment on this package's rules, which identifies them.
const comment = "slipway accepts pod traffic"

// Ensure adds the missing rules to the chains that drop packets by default, and removes the rules
// from all other chains. It never creates a chain. Ensure requires the nft program.
func Ensure(ctx context.Context, family ipfamily.Family, exceptions Exceptions) error {
	return write(ctx, family, exceptions.rules(family))
}

// Remove removes the rules from the chains of both IP families. It is a no-op on a host without the
// nft program.
func Remove(ctx context.Context) error {
	if _, err := exec.LookPath("nft"); err != nil {
		return nil
	}
	return errors.Join(write(ctx, ipfamily.IPv4, nil), write(ctx, ipfamily.IPv6, nil))
}

// rules returns the rules of each chain.
func (e Exceptions) rules(family ipfamily.Family) map[string][]string {
	from := fmt.Sprintf("iifname %q ", e.Bridge)
	rules := map[string][]string{forward: {from + "counter accept", fmt.Sprintf("oifname %q counter accept", e.Bridge)}}
	if e.DNSAddress.IsValid() && ipfamily.Of(e.DNSAddress) == family {
		rules[input] = append(rules[input], fmt.Sprintf("%s%s daddr %s meta l4proto { tcp, udp } th dport 53 counter accept", from, family.Header(), e.DNSAddress))
	}
	for _, port := range e.Ports {
		rules[input] = append(rules[input], from+"tcp dport "+strconv.Itoa(port)+" counter accept")
	}
	return rules
}

// write ensures that the given rules are the package's only rules in the chains whose policy is
// drop. It removes the package's rules from all other chains. If the chains already contain the
// same number of rules, write changes nothing.
func write(ctx context.Context, family ipfamily.Family, rules map[string][]string) error {
	nft, err := knftables.New(family.Table(), table)
	if err != nil {
		return fmt.Errorf("open iptables table %q: %w; install the package nftables", table, err)
	}
	chains, err := nft.List(ctx, "chains")
	if knftables.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list iptables chains: %w", err)
	}
	tx := nft.NewTransaction()
	for _, chain := range []string{forward, input} {
		if !slices.Contains(chains, chain) {
			continue
		}
		if err := writeChain(ctx, nft, tx, family, chain, rules[chain]); err != nil {
			return err
		}
	}
	if tx.NumOperations() == 0 {
		return nil
	}
	if err := nft.Run(ctx, tx); err != nil {
		return fmt.Errorf("write host firewall rules: %w", err)
	}
	return nil
}

// writeChain adds the changes to one chain to tx. It reads the chain with the nft program, because
// package knftables cannot read a chain's policy.
func writeChain(ctx context.Context, nft knftables.Interface, tx *knftables.Transaction, family ipfamily.Family, chain string, rules []string) error {
	content, err := exec.CommandContext(ctx, "nft", "list", "chain", family.Header(), table, chain).Output()
	if err != nil {
		return fmt.Errorf("list iptables chain %s: %w", chain, err)
	}
	if !strings.Contains(string(content), "policy drop;") {
		rules = nil
	}
	if strings.Count(string(content), strconv.Quote(comment)) == len(rules) {
		return nil
	}
	existing, err := nft.ListRules(ctx, chain)
	if err != nil {
		return fmt.Errorf("list rules of iptables chain %s: %w", chain, err)
	}
	for _, rule := range existing {
		if rule.Comment != nil && *rule.Comment == comment {
			tx.Delete(rule)
		}
	}
	for _, rule := range rules {
		tx.Add(&knftables.Rule{Chain: chain, Rule: rule, Comment: knftables.PtrTo(comment)})
	}
	return nil
}
