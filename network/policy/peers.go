package policy

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// peers returns the matches of a rule's peers. A packet that satisfies one of them is from or to a
// peer. A rule without peers has one match that every packet satisfies.
func (c *compiler) peers(d direction, namespace string, peers []networkingv1.NetworkPolicyPeer) (matches []string) {
	if len(peers) == 0 {
		return []string{""}
	}
	var blocks []netip.Prefix
	for _, peer := range peers {
		if peer.IPBlock == nil {
			matches = append(matches, d.peer()+" @"+c.peerSet(namespace, peer))
			continue
		}
		block, except := prefixes(peer.IPBlock.CIDR), prefixes(peer.IPBlock.Except...)
		if len(except) == 0 {
			blocks = append(blocks, block...)
			continue
		}
		for _, prefix := range block {
			matches = append(matches, d.peer()+" "+prefix.String()+" "+d.peer()+" != "+literal(except))
		}
	}
	if blocks = widest(blocks); len(blocks) > 0 {
		matches = append(matches, d.peer()+" "+literal(blocks))
	}
	return matches
}

// prefixes returns the IPv4 networks among CIDRs, without those that another one contains.
func prefixes(cidrs ...string) (result []netip.Prefix) {
	for _, cidr := range cidrs {
		if prefix, err := netip.ParsePrefix(cidr); err == nil && prefix.Addr().Is4() {
			result = append(result, prefix.Masked())
		}
	}
	return widest(result)
}

// widest removes networks that another one contains. The rest do not overlap.
func widest(networks []netip.Prefix) (result []netip.Prefix) {
	slices.SortFunc(networks, func(a, b netip.Prefix) int { return a.Bits() - b.Bits() })
	for _, network := range networks {
		if !slices.ContainsFunc(result, func(wider netip.Prefix) bool { return wider.Overlaps(network) }) {
			result = append(result, network)
		}
	}
	return result
}

// literal returns a set of networks in the syntax of nft.
func literal(networks []netip.Prefix) string {
	var texts []string
	for _, network := range networks {
		texts = append(texts, network.String())
	}
	return "{ " + strings.Join(texts, ", ") + " }"
}

// peerSet returns the name of the set of the pods that a peer selects. Equal selectors share a set.
func (c *compiler) peerSet(namespace string, peer networkingv1.NetworkPolicyPeer) string {
	if peer.NamespaceSelector != nil {
		namespace = ""
	}
	key, err := json.Marshal([]any{namespace, peer.NamespaceSelector, peer.PodSelector})
	if err != nil {
		panic(err) // selectors are plain data
	}
	name := "peers-" + hash(string(key))
	if _, exists := c.result.sets[name]; !exists {
		c.result.sets[name] = set{kind: "ipv4_addr", comment: describe(namespace, peer), elements: c.selectPeers(namespace, peer)}
	}
	return name
}

// selectPeers returns the addresses of the pods that a peer selects. An invalid selector, which the
// API server accepts in no policy, selects nothing.
func (c *compiler) selectPeers(namespace string, peer networkingv1.NetworkPolicyPeer) map[string]bool {
	podSelector, podErr := selectorOrEverything(peer.PodSelector)
	namespaceSelector, namespaceErr := selectorOrEverything(peer.NamespaceSelector)
	elements := map[string]bool{}
	if podErr != nil || namespaceErr != nil {
		return elements
	}
	for name, pods := range c.inNamespace {
		if namespace != "" && name != namespace || namespace == "" && !c.selectsNamespace(namespaceSelector, name) {
			continue
		}
		for _, p := range pods {
			if !p.unknown && podSelector.Matches(p.labels) {
				elements[p.address.String()] = true
			}
		}
	}
	return elements
}

func (c *compiler) selectsNamespace(selector labels.Selector, name string) bool {
	set, exists := c.namespaces[name]
	return exists && selector.Matches(set)
}

func selectorOrEverything(selector *metav1.LabelSelector) (labels.Selector, error) {
	if selector == nil {
		return labels.Everything(), nil
	}
	return metav1.LabelSelectorAsSelector(selector)
}

// describe returns the comment of a peer's set, which administrators see in `nft list table`.
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
