package policy

import (
	"cmp"
	"encoding/json"
	"net/netip"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/slipway-platform/slipway/network/ipfamily"
)

// peers returns the matches for a rule's peers. A packet comes from a peer, or goes to a peer, if
// it satisfies one of the matches. For a rule without peers, peers returns one match that every
// packet satisfies. All pods that the peers select are in one set.
func (c *compiler) peers(d direction, namespace string, peers []networkingv1.NetworkPolicyPeer) (matches []string) {
	if len(peers) == 0 {
		return []string{""}
	}
	var blocks []netip.Prefix
	var selectors []networkingv1.NetworkPolicyPeer
	for _, peer := range peers {
		if peer.IPBlock == nil {
			selectors = append(selectors, peer)
			continue
		}
		c.budget.spend(1 + len(peer.IPBlock.Except))
		block, except := c.prefixes(peer.IPBlock.CIDR), c.prefixes(peer.IPBlock.Except...)
		if len(except) == 0 {
			blocks = append(blocks, block...)
			continue
		}
		for _, prefix := range block {
			matches = append(matches, d.peer(c.family)+" "+prefix.String()+" "+d.peer(c.family)+" != "+literal(except))
		}
	}
	if len(selectors) > 0 {
		name := c.peerSet(namespace, selectors)
		matches = append(matches, d.peer(c.family)+" @"+name)
		if d == ingress && c.sets[name].hosts {
			matches = append(matches, d.peer(c.family)+" @"+c.share(hostSet, c.hostAddresses))
		}
	}
	if blocks = widest(blocks); len(blocks) > 0 {
		matches = append(matches, d.peer(c.family)+" "+literal(blocks))
	}
	return matches
}

// prefixes returns the CIDRs that are in the snapshot's IP family. It omits networks that are
// contained in another network.
func (s snapshot) prefixes(cidrs ...string) (result []netip.Prefix) {
	for _, cidr := range cidrs {
		if prefix, err := netip.ParsePrefix(cidr); err == nil && ipfamily.Of(prefix.Addr()) == s.family {
			result = append(result, prefix.Masked())
		}
	}
	return widest(result)
}

// widest removes networks that are contained in another network. The remaining networks do not
// overlap.
func widest(networks []netip.Prefix) (result []netip.Prefix) {
	slices.SortFunc(networks, func(a, b netip.Prefix) int { return cmp.Or(a.Addr().Compare(b.Addr()), a.Bits()-b.Bits()) })
	for _, network := range networks {
		// Two networks are disjoint, or one of them contains the other and precedes it.
		if last := len(result) - 1; last < 0 || !result[last].Overlaps(network) {
			result = append(result, network)
		}
	}
	return result
}

// literal returns a set of networks in nft syntax.
func literal(networks []netip.Prefix) string {
	var texts []string
	for _, network := range networks {
		texts = append(texts, network.String())
	}
	return "{ " + strings.Join(texts, ", ") + " }"
}

// peerSet returns the name of the set that contains the pods selected by any of the peers. Equal
// selectors share a set.
func (c *compiler) peerSet(namespace string, peers []networkingv1.NetworkPolicyPeer) string {
	var keys, descriptions []string
	for _, peer := range peers {
		namespace := namespace
		if peer.NamespaceSelector != nil {
			namespace = ""
		}
		key, err := json.Marshal([]any{namespace, peer.NamespaceSelector, peer.PodSelector})
		if err != nil {
			panic(err) // not possible, because selectors contain only strings
		}
		keys = append(keys, string(key))
		descriptions = append(descriptions, describe(namespace, peer))
	}
	c.budget.spend(len(peers))
	return c.share("peers-"+hash(keys...), func() measuredSet {
		result := measuredSet{set: set{kind: c.family.Type(), comment: strings.Join(descriptions, "; "), elements: map[string]bool{}}}
		for _, peer := range peers {
			if c.selectPeers(namespace, peer, &result); result.work > c.budget.remaining {
				break
			}
		}
		return result
	})
}

// share adds a set to the draft. create returns the set and the work that creating it took. A set
// that exceeds the budget can be incomplete, but it has no effect: the project is closed, and no
// other rule shares the set.
func (c *compiler) share(name string, create func() measuredSet) string {
	measured, exists := c.sets[name]
	if !exists {
		measured = create()
		if measured.work <= c.budget.remaining {
			c.sets[name] = measured
		}
	}
	c.budget.spendOnSet(name, measured.work)
	c.draft.sets[name] = true
	return name
}

// selectPeers adds the addresses of the pods that a peer selects to result, and adds the work that
// this takes. An invalid selector, which the API server does not accept in policies, selects
// nothing.
//
// As in OpenShift 3.11, a peer that selects all pods in the project "default" also selects the
// hosts. Otherwise, the routers on other hosts could not reach isolated pods.
func (c *compiler) selectPeers(namespace string, peer networkingv1.NetworkPolicyPeer, result *measuredSet) {
	result.work += values(peer.PodSelector) + values(peer.NamespaceSelector)
	if result.work > c.budget.remaining {
		return // the project is closed
	}
	podSelector, podErr := selectorOrEverything(peer.PodSelector)
	namespaceSelector, namespaceErr := selectorOrEverything(peer.NamespaceSelector)
	if podErr != nil || namespaceErr != nil {
		return
	}
	add := func(project string) {
		pods := c.inNamespace[project]
		result.work += comparisons(peer.PodSelector, len(pods))
		for _, p := range pods {
			if !p.unknown && podSelector.Matches(p.labels) {
				result.elements[p.address.String()] = true
			}
		}
		result.hosts = result.hosts || project == metav1.NamespaceDefault && values(peer.PodSelector) == 0
	}
	if peer.NamespaceSelector == nil {
		add(namespace)
		return
	}
	result.work += comparisons(peer.NamespaceSelector, len(c.inNamespace))
	for name := range c.inNamespace {
		if set, exists := c.namespaces[name]; exists && namespaceSelector.Matches(set) {
			add(name)
		}
	}
}

func selectorOrEverything(selector *metav1.LabelSelector) (labels.Selector, error) {
	if selector == nil {
		return labels.Everything(), nil
	}
	return metav1.LabelSelectorAsSelector(selector)
}

// describe returns the comment on a peer's set, which administrators see in `nft list table`.
func describe(namespace string, peer networkingv1.NetworkPolicyPeer) string {
	text := "project " + namespace
	if peer.NamespaceSelector != nil {
		text = "projects " + orAll(metav1.FormatLabelSelector(peer.NamespaceSelector))
	}
	if peer.PodSelector != nil {
		text += ", pods " + orAll(metav1.FormatLabelSelector(peer.PodSelector))
	}
	return text
}

func orAll(selector string) string {
	if selector == "" || selector == "<none>" {
		return "all"
	}
	return selector
}
