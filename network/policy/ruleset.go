package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"net/netip"
	"slices"
	"strings"
)

// ruleset is the content of the nftables table that depends on the cluster.
type ruleset struct {
	sets   map[string]set
	chains map[string]chain
	// pods contains the chain of each isolated pod of this node.
	pods map[direction]map[netip.Addr]string
	// closed are the projects whose policies exceed the budget of their owner, in order.
	closed []string
}

// set is an nftables set. Its elements are in the syntax of nft.
type set struct {
	kind     string // type of the elements
	comment  string
	elements map[string]bool
}

// chain is an nftables chain without a hook.
type chain struct {
	comment string
	rules   []string
}

// direction is that of connections, from the view of the isolated pod.
type direction int

const (
	egress direction = iota
	ingress
)

func (d direction) String() string { return [...]string{"egress", "ingress"}[d] }

// own and peer return the fields with the addresses of the isolated pod and of the other end.
func (d direction) own() string  { return [...]string{"ip saddr", "ip daddr"}[d] }
func (d direction) peer() string { return [...]string{"ip daddr", "ip saddr"}[d] }

// podMap returns the name of the nftables map from pods to chains.
func (d direction) podMap() string { return d.String() + "-pods" }

// selfSet is the set of isolated pods, each as source and destination: a pod always reaches itself.
const selfSet = "self"

func newRuleset() *ruleset {
	return &ruleset{
		sets:   map[string]set{selfSet: {kind: "ipv4_addr . ipv4_addr", elements: map[string]bool{}}},
		chains: map[string]chain{},
		pods:   map[direction]map[netip.Addr]string{egress: {}, ingress: {}},
	}
}

// close adds a closed project.
func (r *ruleset) close(project string) {
	at, _ := slices.BinarySearch(r.closed, project)
	r.closed = slices.Insert(r.closed, at, project)
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
