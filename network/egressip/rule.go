package egressip

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Table is the routing table for packets that leave the cluster through another host. rulePriority
// is the priority of the rule that selects the table.
const (
	Table        = 8383
	rulePriority = 83
)

// rule returns the rule for packets with MarkRemote.
func rule() *netlink.Rule {
	rule := netlink.NewRule()
	rule.Family, rule.Priority, rule.Table = netlink.FAMILY_V4, rulePriority, Table
	mask := MarkMask
	rule.Mark, rule.Mask = MarkRemote, &mask
	return rule
}

// EnsureRule adds the rule that selects Table. Any rule makes each route lookup on the host slower,
// even after its removal, so EnsureRule is only called when a project has egress addresses.
func EnsureRule() error {
	if err := netlink.RuleAdd(rule()); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("add rule of routes to the outside: %w", err)
	}
	return nil
}

// RemoveRule removes the rule. The kernel removes the table's routes with their device.
func RemoveRule() error {
	for {
		err := netlink.RuleDel(rule())
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EAFNOSUPPORT) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("remove rule of routes to the outside: %w", err)
		}
	}
}
