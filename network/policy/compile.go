package policy

import (
	"net/netip"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// compiler turns a snapshot into a ruleset.
type compiler struct {
	snapshot
	inNamespace map[string][]pod
	result      *ruleset
	// chainsOf contains the chains of the policies that select each pod of this node.
	chainsOf map[direction]map[netip.Addr][]string
}

// compile returns the ruleset that enforces the policies of a snapshot.
//
// A policy has one chain for each direction, whose rules accept packets. An isolated pod has a
// chain that jumps to the chains of all policies that select it, and then drops the packet. Pods
// that the same policies select share it. Pods that a selector selects are elements of a set, which
// all rules with that selector share. So the number of rules that a packet passes depends only on
// the policies of the two pods, not on the number of pods, projects or policies.
func compile(s snapshot) *ruleset {
	c := &compiler{
		snapshot: s, inNamespace: s.byNamespace(), result: newRuleset(),
		chainsOf: map[direction]map[netip.Addr][]string{egress: {}, ingress: {}},
	}
	policed := map[string]bool{}
	for _, policy := range s.policies {
		policed[policy.Namespace] = true
		c.add(policy)
	}
	for direction, chainsOf := range c.chainsOf {
		for address, chains := range chainsOf {
			c.isolate(direction, address, chains)
		}
	}
	for _, p := range s.pods {
		if p.local && p.unknown && policed[p.namespace] {
			c.isolate(egress, p.address, nil)
			c.isolate(ingress, p.address, nil)
		}
	}
	return c.result
}

// add adds the chains of a policy, if it selects pods of this node.
func (c *compiler) add(policy *networkingv1.NetworkPolicy) {
	selector, err := metav1.LabelSelectorAsSelector(&policy.Spec.PodSelector)
	if err != nil {
		selector = labels.Everything() // the API server accepts no such policy; isolate the project
	}
	var selected []netip.Addr
	for _, p := range c.inNamespace[policy.Namespace] {
		if p.local && !p.unknown && selector.Matches(p.labels) {
			selected = append(selected, p.address)
		}
	}
	if len(selected) == 0 {
		return
	}
	for direction, rules := range map[direction]func(*networkingv1.NetworkPolicy) []string{egress: c.egressRules, ingress: c.ingressRules} {
		if !isolates(policy, direction) {
			continue
		}
		name := direction.String() + "-" + hash(policy.Namespace, policy.Name)
		c.result.chains[name] = chain{comment: policy.Namespace + "/" + policy.Name, rules: rules(policy)}
		for _, address := range selected {
			c.chainsOf[direction][address] = append(c.chainsOf[direction][address], name)
		}
	}
}

// isolates reports whether a policy isolates pods in a direction. The API server sets policyTypes
// of policies without it.
func isolates(policy *networkingv1.NetworkPolicy, d direction) bool {
	kind := networkingv1.PolicyTypeIngress
	if d == egress {
		kind = networkingv1.PolicyTypeEgress
	}
	if len(policy.Spec.PolicyTypes) == 0 {
		return d == ingress || len(policy.Spec.Egress) > 0
	}
	return slices.Contains(policy.Spec.PolicyTypes, kind)
}

// isolate drops the packets of a pod that no chain of a policy accepts.
func (c *compiler) isolate(d direction, address netip.Addr, policies []string) {
	slices.Sort(policies)
	name := d.String() + "-pods-" + hash(policies...)
	if _, exists := c.result.chains[name]; !exists {
		var rules []string
		for _, policy := range policies {
			rules = append(rules, "jump "+policy)
		}
		c.result.chains[name] = chain{rules: append(rules, "counter drop")}
	}
	c.result.pods[d][address] = name
	c.result.sets[selfSet].elements[address.String()+" . "+address.String()] = true
}

// ingressRules returns the rules that accept packets to the pods of a policy.
func (c *compiler) ingressRules(policy *networkingv1.NetworkPolicy) (rules []string) {
	for _, rule := range policy.Spec.Ingress {
		rules = append(rules, accept(c.peers(ingress, policy.Namespace, rule.From), c.ports(rule.Ports))...)
	}
	return rules
}

// egressRules returns the rules that accept packets from the pods of a policy.
func (c *compiler) egressRules(policy *networkingv1.NetworkPolicy) (rules []string) {
	for _, rule := range policy.Spec.Egress {
		rules = append(rules, accept(c.peers(egress, policy.Namespace, rule.To), c.ports(rule.Ports))...)
	}
	return rules
}

// accept returns rules that accept packets from any of the peers to any of the ports.
func accept(peers, ports []string) (rules []string) {
	for _, peer := range peers {
		for _, port := range ports {
			rules = append(rules, strings.Join(append(strings.Fields(peer+" "+port), "accept"), " "))
		}
	}
	return rules
}
