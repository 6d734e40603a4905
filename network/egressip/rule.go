package egressip

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/slipway-platform/slipway/network/ipfamily"
)

// Table is the routing table for packets that leave the cluster through another host. rulePriority
// is the priority of the rule that selects the table.
const (
	Table        = 8383
	rulePriority = 83
)

// rule returns the routing rule that selects Table for packets with MarkRemote.
func rule(family ipfamily.Family) *netlink.Rule {
	rule := netlink.NewRule()
	rule.Family, rule.Priority, rule.Table = family.Netlink(), rulePriority, Table
	mask := MarkMask
	rule.Mark, rule.Mask = MarkRemote, &mask
	return rule
}

// EnsureRule adds the rule that selects Table for packets in an IP family. Call it only if a
// project has egress addresses in the family, because any rule makes each route lookup on the host
// slower. The lookups remain slower even after the rule is removed.
func EnsureRule(family ipfamily.Family) error {
	if err := netlink.RuleAdd(rule(family)); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("add external route rule: %w", err)
	}
	return nil
}

// RemoveRule removes the rule. The kernel removes the table's routes with their device.
func RemoveRule(family ipfamily.Family) error {
	for {
		err := netlink.RuleDel(rule(family))
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EAFNOSUPPORT) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("remove external route rule: %w", err)
		}
	}
}
