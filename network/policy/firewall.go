package policy

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	networkv1 "github.com/openshift/api/network/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/network/ipfamily"
)

// firewall contains a project's EgressNetworkPolicies and their effect.
type firewall struct {
	policies []*networkv1.EgressNetworkPolicy
	effect   effect
	problem  string // the reason why the rules of the policies do not apply; empty if they apply
}

// effect is the combined effect of a project's EgressNetworkPolicies.
type effect int

const (
	applyRules effect = iota
	denyAll           // drops all external traffic
	allowAll
)

// firewallsByProject returns the firewalls of all projects with policies.
//
// As in OpenShift 3.11, a policy without rules is ignored. A project is closed if it has two
// policies, because they contradict each other. It is also closed if it shares its network with
// other projects, because its policy would affect them. A global project has no firewall.
func (s snapshot) firewallsByProject() map[string]firewall {
	result := map[string]firewall{}
	for _, policy := range s.firewalls {
		if len(policy.Spec.Egress) > 0 {
			f := result[policy.Namespace]
			f.policies = append(f.policies, policy)
			result[policy.Namespace] = f
		}
	}
	for project, f := range result {
		slices.SortFunc(f.policies, func(a, b *networkv1.EgressNetworkPolicy) int { return strings.Compare(a.Name, b.Name) })
		switch joined := s.joined(project); {
		case s.isGlobal(project):
			f.effect = allowAll
			f.problem = fmt.Sprintf("project %q is global, so its EgressNetworkPolicies have no effect; delete them", project)
		case len(joined) > 0:
			f.effect = denyAll
			f.problem = fmt.Sprintf("project %q shares its network with %s, so all its external traffic is dropped; "+
				"isolate the projects or delete the EgressNetworkPolicy", project, strings.Join(joined, ", "))
		case len(f.policies) > 1:
			f.effect = denyAll
			f.problem = fmt.Sprintf("project %q has %d EgressNetworkPolicies, so all its external traffic is dropped; "+
				"delete all but one", project, len(f.policies))
		}
		result[project] = f
	}
	return result
}

// firewallNames returns the DNS names in the firewalls whose rules are enforced.
func (s snapshot) firewallNames() map[string]bool {
	names := map[string]bool{}
	for _, f := range s.firewallsByProject() {
		for _, rule := range f.policies[0].Spec.Egress {
			if f.effect == applyRules && rule.To.DNSName != "" {
				names[canonicalName(rule.To.DNSName)] = true
			}
		}
	}
	return names
}

// isGlobal reports whether a project is in the global network.
func (s snapshot) isGlobal(project string) bool {
	id, hasID := s.netIDs[project]
	return project == metav1.NamespaceDefault || hasID && id == 0
}

// joined returns the other projects in a project's network.
func (s snapshot) joined(project string) (others []string) {
	id, hasID := s.netIDs[project]
	for other, otherID := range s.netIDs {
		if hasID && other != project && otherID == id {
			others = append(others, other)
		}
	}
	slices.Sort(others)
	return others
}

// addFirewalls adds a chain for each project that has a firewall and has pods on this node.
func (c *compiler) addFirewalls() {
	c.result.sets[platformSet] = set{kind: c.family.Type(), elements: elementsOf(c.platform)}
	c.addGateways()
	for project, f := range c.firewallsByProject() {
		if f.effect == allowAll {
			continue
		}
		name := external.String() + "-" + hash(project)
		for _, p := range c.inNamespace[project] {
			if !p.local {
				continue
			}
			c.result.pods[external][p.address] = name
			if _, exists := c.result.chains[name]; !exists {
				c.result.chains[name] = c.firewallChain(f)
			}
		}
	}
}

func (c *compiler) firewallChain(f firewall) chain {
	policy := f.policies[0]
	result := chain{comment: policy.Namespace + "/" + policy.Name, rules: []string{denyRule}}
	if f.effect == applyRules {
		result.rules = c.firewallRules(policy.Spec.Egress)
	}
	return result
}

const denyRule = "counter drop"

// firewallRules returns nftables rules with the same effect as a firewall's rules: the first rule
// that matches a packet applies. Within a run of consecutive rules of one type, the order has no
// effect. Therefore, a single nftables rule with a set matches all networks in the run.
func (c *compiler) firewallRules(egress []networkv1.EgressNetworkPolicyRule) (rules []string) {
	for len(egress) > 0 {
		kind := egress[0].Type
		end := slices.IndexFunc(egress, func(r networkv1.EgressNetworkPolicyRule) bool { return r.Type != kind })
		if end < 0 {
			end = len(egress)
		}
		rules = append(rules, c.firewallRun(kind, egress[:end])...)
		egress = egress[end:]
	}
	return rules
}

// firewallRun returns the nftables rules for a run of firewall rules that have the same type.
func (c *compiler) firewallRun(kind networkv1.EgressNetworkPolicyRuleType, run []networkv1.EgressNetworkPolicyRule) (rules []string) {
	verdict, exceptMetadata := denyRule, ""
	if kind == networkv1.EgressNetworkPolicyRuleAllow {
		// The owner of a DNS name must not be able to open access to a cloud's metadata service.
		verdict, exceptMetadata = "accept", fmt.Sprintf(" %s daddr != { %s }", c.family.Header(), c.family.Metadata())
	}
	var networks []netip.Prefix
	for _, rule := range run {
		if rule.To.DNSName == "" {
			networks = append(networks, c.prefixes(c.selected(kind, rule.To.CIDRSelector))...)
			continue
		}
		name := canonicalName(rule.To.DNSName)
		c.result.sets[nameSet(name)] = set{kind: c.family.Type(), comment: name, elements: elementsOf(c.names[name])}
		rules = append(rules, fmt.Sprintf("%s daddr @%s%s %s", c.family.Header(), nameSet(name), exceptMetadata, verdict))
	}
	switch networks = widest(c.withGateways(networks)); {
	case len(networks) == 0:
		return rules
	case networks[0].Bits() == 0:
		return []string{verdict}
	}
	return append(rules, fmt.Sprintf("%s daddr %s %s", c.family.Header(), literal(networks), verdict))
}

// selected returns the network that a rule selects in the IP family. A rule that denies all IPv4
// addresses also denies all IPv6 addresses, because its purpose is to block all connections to
// servers outside the cluster.
func (c *compiler) selected(kind networkv1.EgressNetworkPolicyRuleType, selector string) string {
	selector = cmp.Or(correctedCIDRs[selector], selector)
	if kind == networkv1.EgressNetworkPolicyRuleDeny && selector == ipfamily.IPv4.Everything() {
		return c.family.Everything()
	}
	return selector
}

// correctedCIDRs maps networks that OpenShift 3.11 replaces to their replacements.
var correctedCIDRs = map[string]string{"0.0.0.0/32": "0.0.0.0/0"}

// canonicalName returns the canonical form of a firewall's DNS name, which is used for comparisons.
func canonicalName(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }

// nameSet returns the name of the nftables set that contains a DNS name's addresses.
func nameSet(name string) string { return "name-" + hash(name) }
