package policy

import (
	"maps"
	"net/netip"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// compiler compiles a snapshot into a ruleset.
type compiler struct {
	snapshot
	// inNamespace contains the pods of each project. It contains the project "default" even if that
	// project has no pods, because a peer that selects the project also selects the hosts.
	inNamespace map[string][]pod
	result      *ruleset
	// chainsOf maps, for each direction, the pods on this node to the chains of the policies that
	// select them.
	chainsOf map[direction]map[netip.Addr][]string
	// sets contains all sets of peers and ports created so far, with the work that each of them
	// took to create.
	sets map[string]measuredSet
	// budget is the budget of the current project's owner, and draft is the current project's part
	// of the ruleset.
	budget *budget
	draft  *draft
}

// measuredSet is a set with the work that it took to create, in budget units.
type measuredSet struct {
	set
	work int
	// hosts means that the peers in the set include the cluster's hosts.
	hosts bool
}

// draft is one project's part of a ruleset.
type draft struct {
	sets     map[string]bool // names of the project's sets
	chains   map[string]chain
	chainsOf map[direction]map[netip.Addr][]string
}

func newDraft() *draft {
	return &draft{sets: map[string]bool{}, chains: map[string]chain{}, chainsOf: map[direction]map[netip.Addr][]string{egress: {}, ingress: {}}}
}

// compile returns the ruleset that enforces a snapshot's policies in the snapshot's IP family.
//
// A policy has one chain for each direction, whose rules accept packets. An isolated pod has a
// chain that jumps to the chains of all policies that select the pod, and then drops the packet.
// Pods that are selected by the same policies share this chain. The pods that a policy rule selects
// are elements of a set, which all rules with the same selectors share. Therefore, the number of
// rules that a packet traverses depends only on the policies of the two pods. It does not depend on
// the number of pods, projects or policies.
//
// The work for one user's projects is limited. A project that exceeds the limit is closed: its pods
// are isolated, and no rule accepts packets. Otherwise, one user could delay the policies of all
// users.
func compile(s snapshot) *ruleset {
	c := &compiler{
		snapshot: s, inNamespace: s.byNamespace(), result: newRuleset(s.family), sets: map[string]measuredSet{},
		chainsOf: map[direction]map[netip.Addr][]string{egress: {}, ingress: {}},
	}
	// Add the project "default" even if it has no pods, because peers that select it also select
	// the hosts.
	c.inNamespace[metav1.NamespaceDefault] = c.inNamespace[metav1.NamespaceDefault]
	projects := s.projects()
	budgets := s.budgets(projects)
	for _, project := range projects {
		c.budget = budgets[project.owner]
		c.addProject(project)
	}
	for direction, chainsOf := range c.chainsOf {
		for address, chains := range chainsOf {
			c.isolate(direction, address, chains)
		}
	}
	c.addOpen()
	c.addFirewalls()
	c.addNetworks()
	c.addExits()
	return c.result
}

// addProject adds a project's policies, or closes the project if its policies exceed the budget.
func (c *compiler) addProject(p project) {
	c.draft = newDraft()
	for _, policy := range p.policies {
		if !c.budget.exhausted() {
			c.add(policy)
		}
	}
	closed := c.budget.exhausted()
	if closed {
		c.result.close(p.namespace)
	} else {
		c.commit()
	}
	for _, pod := range c.inNamespace[p.namespace] {
		if pod.local && (closed || pod.unknown) {
			c.isolate(egress, pod.address, nil)
			c.isolate(ingress, pod.address, nil)
		}
	}
}

// commit adds the project's draft to the result.
func (c *compiler) commit() {
	maps.Copy(c.result.chains, c.draft.chains)
	for name := range c.draft.sets {
		c.result.sets[name] = c.sets[name].set
	}
	for d, chainsOf := range c.draft.chainsOf {
		maps.Copy(c.chainsOf[d], chainsOf)
	}
}

// add adds a policy's chains if the policy selects pods on this node.
func (c *compiler) add(policy *networkingv1.NetworkPolicy) {
	c.budget.spend(1 + values(&policy.Spec.PodSelector) + comparisons(&policy.Spec.PodSelector, len(c.inNamespace[policy.Namespace])))
	if c.budget.exhausted() {
		return
	}
	selector, err := metav1.LabelSelectorAsSelector(&policy.Spec.PodSelector)
	if err != nil {
		selector = labels.Everything() // the API server rejects invalid selectors; isolate the project
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
		c.draft.chains[name] = chain{comment: policy.Namespace + "/" + policy.Name, rules: rules(policy)}
		for _, address := range selected {
			c.draft.chainsOf[direction][address] = append(c.draft.chainsOf[direction][address], name)
		}
	}
}

// isolates reports whether a policy isolates pods in a direction. The API server sets policyTypes
// if a policy omits it.
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

// isolate drops a pod's packets in a direction unless a policy's chain accepts them.
func (c *compiler) isolate(d direction, address netip.Addr, policies []string) {
	slices.Sort(policies)
	name := d.String() + "-pods-" + hash(policies...)
	if _, exists := c.result.chains[name]; !exists {
		var rules []string
		for _, policy := range policies {
			rules = append(rules, "jump "+policy)
		}
		c.result.chains[name] = chain{rules: append(rules, "counter drop"), exempt: true}
	}
	c.result.pods[d][address] = name
	c.result.sets[selfSet].elements[address.String()+" . "+address.String()] = true
}

// openSet contains this node's pods whose incoming packets no network policy restricts. It exists
// while the cluster has network policies. No rule refers to the set; Isolation reads it.
const openSet = "open-pods"

func (c *compiler) addOpen() {
	if len(c.policies) == 0 {
		return
	}
	open := map[string]bool{}
	for _, p := range c.pods {
		if _, isolated := c.result.pods[ingress][p.address]; p.local && !isolated {
			open[p.address.String()] = true
		}
	}
	c.result.sets[openSet] = set{kind: c.family.Type(), comment: "pods that no network policy isolates", elements: open}
}

// ingressRules returns the rules that accept packets to the pods that a policy selects.
func (c *compiler) ingressRules(policy *networkingv1.NetworkPolicy) (rules []string) {
	for _, rule := range policy.Spec.Ingress {
		if c.budget.exhausted() {
			break
		}
		rules = append(rules, c.accept(c.peers(ingress, policy.Namespace, rule.From), c.ports(c.inNamespace[policy.Namespace], rule.Ports))...)
	}
	return rules
}

// egressRules returns the rules that accept the packets that a policy's egress rules allow.
func (c *compiler) egressRules(policy *networkingv1.NetworkPolicy) (rules []string) {
	for _, rule := range policy.Spec.Egress {
		if c.budget.exhausted() {
			break
		}
		rules = append(rules, c.accept(c.peers(egress, policy.Namespace, rule.To), c.ports(c.pods, rule.Ports))...)
	}
	return rules
}

// accept returns rules that accept packets from any of the peers to any of the ports.
func (c *compiler) accept(peers, ports []string) (rules []string) {
	c.budget.spend(len(peers) * len(ports))
	for _, peer := range peers {
		for _, port := range ports {
			rules = append(rules, strings.Join(append(strings.Fields(peer+" "+port), "accept"), " "))
		}
	}
	return rules
}
