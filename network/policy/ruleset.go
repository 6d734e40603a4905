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

// ruleset is the part of an IP family's nftables table that depends on the cluster.
type ruleset struct {
	sets   map[string]set
	chains map[string]chain
	// pods maps each isolated pod on this node to the name of its chain.
	pods map[direction]map[netip.Addr]string
	// closed lists the projects whose policies exceed their owner's budget, in sorted order.
	closed []string
	// multitenant indicates whether projects' networks are isolated from each other.
	multitenant bool
	// exits indicates whether projects have their own source addresses outside the cluster.
	exits bool
}

// set is an nftables set, or a map if its type contains a colon. Its elements are in nft syntax.
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
	// exempt indicates whether replies, and packets of a pod to itself, bypass the rules.
	exempt bool
}

// direction is the direction of connections, from the point of view of the isolated pod. External
// connections are the connections that an egress firewall restricts. In multitenant mode, source
// and target are the directions of packets, from the point of view of a pod on this node.
type direction int

const (
	egress direction = iota
	ingress
	external
	source
	target
)

// policyDirections returns the directions that every ruleset has.
func policyDirections() []direction { return []direction{egress, ingress, external} }

// directions returns the directions of a ruleset.
func (r *ruleset) directions() []direction {
	if r.multitenant {
		return append(policyDirections(), source, target)
	}
	return policyDirections()
}

func (d direction) String() string {
	return [...]string{"egress", "ingress", "external", "network-source", "network-target"}[d]
}

// own returns the header field that contains the isolated pod's address. peer returns the header
// field that contains the address of the pod's peer.
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

// Sets that every ruleset has.
const (
	// selfSet contains pairs of addresses, in which the source and destination are the same
	// isolated pod: a pod can always reach itself.
	selfSet = "self"
	// platformSet contains the service addresses that egress firewalls never restrict.
	platformSet = "platform-services"
)

func newRuleset(f ipfamily.Family) *ruleset {
	return &ruleset{
		sets: map[string]set{
			selfSet:     {kind: f.Type() + " . " + f.Type(), elements: map[string]bool{}},
			platformSet: {kind: f.Type(), elements: map[string]bool{}},
			gatewaySet:  {kind: f.Type(), elements: map[string]bool{}},
		},
		chains: map[string]chain{},
		pods:   map[direction]map[netip.Addr]string{egress: {}, ingress: {}, external: {}, source: {}, target: {}},
	}
}

// close marks a project as closed.
func (r *ruleset) close(project string) {
	at, _ := slices.BinarySearch(r.closed, project)
	r.closed = slices.Insert(r.closed, at, project)
}

// withNames returns a copy of the ruleset with the given addresses of DNS names.
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
	return c.comment == other.comment && c.exempt == other.exempt && slices.Equal(c.rules, other.rules)
}

// sortedKeys returns a map's keys in sorted order, so that transactions are reproducible.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// hash returns a short string that identifies the text and can be part of a chain's name.
func hash(text ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(text, "\x00")))
	return hex.EncodeToString(sum[:16])
}
