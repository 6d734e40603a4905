package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/slipway-platform/slipway/network/ipfamily"
)

// ruleset is the content of the nftables table of an IP family that depends on the cluster.
type ruleset struct {
	sets   map[string]set
	chains map[string]chain
	// pods contains the chain of each isolated pod of this node.
	pods map[direction]map[netip.Addr]string
	// closed are the projects whose policies exceed the budget of their owner, in order.
	closed []string
	// multitenant isolates the networks of projects.
	multitenant bool
	// exits gives projects their own source addresses outside of the cluster.
	exits bool
}

// set is an nftables set, or a map if its type contains a colon. Its elements are in the syntax of
// nft.
type set struct {
	kind     string // type of the elements
	interval bool   // elements are networks
	comment  string
	elements map[string]bool
}

// chain is an nftables chain without a hook.
type chain struct {
	comment string
	rules   []string
}

// direction is the direction of connections, from the view of the isolated pod. External
// connections are the connections that an egress firewall restricts. Source and target are the
// directions of packets in multitenant mode, from the view of a pod of this node.
type direction int

const (
	egress direction = iota
	ingress
	external
	source
	target
)

// policyDirections are the directions of every ruleset.
func policyDirections() []direction { return []direction{egress, ingress, external} }

// directions are the directions of a ruleset.
func (r *ruleset) directions() []direction {
	if r.multitenant {
		return append(policyDirections(), source, target)
	}
	return policyDirections()
}

func (d direction) String() string {
	return [...]string{"egress", "ingress", "external", "network-source", "network-target"}[d]
}

// own and peer return the fields with the addresses of the isolated pod and of the other end.
func (d direction) own(f ipfamily.Family) string {
	if d == ingress || d == target {
		return f.Header() + " daddr"
	}
	return f.Header() + " saddr"
}

func (d direction) peer(f ipfamily.Family) string {
	if d == ingress || d == target {
		return f.Header() + " saddr"
	}
	return f.Header() + " daddr"
}

// podMap returns the name of the nftables map from pods to chains.
func (d direction) podMap() string { return d.String() + "-pods" }

// Sets of every ruleset.
const (
	// selfSet contains isolated pods, each as source and destination: a pod always reaches itself.
	selfSet = "self"
	// platformSet contains the addresses of services that egress firewalls never restrict.
	platformSet = "platform-services"
)

func newRuleset(f ipfamily.Family) *ruleset {
	return &ruleset{
		sets: map[string]set{
			selfSet:     {kind: f.Type() + " . " + f.Type(), elements: map[string]bool{}},
			platformSet: {kind: f.Type(), elements: map[string]bool{}},
		},
		chains: map[string]chain{},
		pods:   map[direction]map[netip.Addr]string{egress: {}, ingress: {}, external: {}, source: {}, target: {}},
	}
}

// close adds a closed project.
func (r *ruleset) close(project string) {
	at, _ := slices.BinarySearch(r.closed, project)
	r.closed = slices.Insert(r.closed, at, project)
}

// withNames returns the ruleset with other addresses of DNS names.
func (r *ruleset) withNames(names map[string][]netip.Addr) *ruleset {
	result := *r
	result.sets = maps.Clone(r.sets)
	for name, addresses := range names {
		if set, used := r.sets[nameSet(name)]; used {
			set.elements = elementsOf(addresses)
			result.sets[nameSet(name)] = set
		}
	}
	return &result
}

func elementsOf(addresses []netip.Addr) map[string]bool {
	elements := map[string]bool{}
	for _, address := range addresses {
		elements[address.String()] = true
	}
	return elements
}

// equal reports whether two chains have the same rules.
func (c chain) equal(other chain) bool {
	return c.comment == other.comment && slices.Equal(c.rules, other.rules)
}

// sortedKeys returns the keys of a map in order, so that transactions are reproducible.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// hash returns a short name for text, such as a part of a chain's name.
func hash(text ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(text, "\x00")))
	return hex.EncodeToString(sum[:16])
}
