// Package topology derives where a new volume may be, and should be, from the nodes and the StorageClass, and where a PersistentVolume can be used
// from the driver's answer (document "CSI Volume Plugins in Kubernetes", Provisioning and Deleting; Topology Representation). It is pure.
package topology

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
)

// Segment is one place: values by topology key.
type Segment map[string]string

// Node is a node that has the driver.
type Node struct {
	Name   string
	Labels map[string]string
	// Keys are the topology keys that the driver has reported there.
	Keys []string
}

// Input is what a requirement is derived from.
type Input struct {
	// Nodes are all nodes that have the driver, in any order.
	Nodes []Node
	// Selected is the node that the scheduler has chosen; empty for immediate binding.
	Selected string
	// Strict leaves nothing but the selected node's segment as requisite.
	Strict bool
	// Allowed are the AllowedTopologies of the StorageClass.
	Allowed []corev1.TopologySelectorTerm
	// Claim is the name of the claim. With Spread, claims named like those of a StatefulSet are spread over the segments.
	Claim  string
	Spread bool
	// UID is the identity of the claim: it chooses, in the same way each time, the node whose keys count when none is selected.
	UID string
}

// Requirement is what CreateVolume is told; nil when there is nothing to say. It is the same for any order of the nodes and of the allowed topologies.
func Requirement(in Input) (*csi.TopologyRequirement, error) {
	selected, err := in.selectedSegment()
	if err != nil {
		return nil, err
	}
	requisite := in.requisite(selected)
	if len(requisite) == 0 {
		return nil, nil
	}
	result := &csi.TopologyRequirement{Requisite: topologies(requisite)}
	switch {
	case selected != nil:
		first := slices.IndexFunc(requisite, func(s Segment) bool { return s.within(selected) })
		if first < 0 {
			return nil, fmt.Errorf("derive topology: the selected node %q is in none of the allowed topologies", in.Selected)
		}
		result.Preferred = topologies(rotated(requisite, first))
	case in.Spread:
		if first, ok := spread(in.Claim, len(requisite)); ok {
			result.Preferred = topologies(rotated(requisite, first))
		}
	}
	return result, nil
}

// selectedSegment is the place of the selected node, nil without one. The node must have the driver, with a label for each of its keys: the volume would be
// made where the pod cannot use it.
func (in Input) selectedSegment() (Segment, error) {
	if in.Selected == "" {
		return nil, nil
	}
	i := slices.IndexFunc(in.Nodes, func(n Node) bool { return n.Name == in.Selected })
	if i < 0 {
		return nil, fmt.Errorf("derive topology: the driver is not registered on the selected node %q", in.Selected)
	}
	node := in.Nodes[i]
	if len(node.Keys) == 0 {
		return nil, fmt.Errorf("derive topology: the driver has reported no topology keys on the selected node %q", in.Selected)
	}
	segment, ok := node.segment(node.Keys)
	if !ok {
		return nil, fmt.Errorf("derive topology: the selected node %q lacks a label of the keys %q", in.Selected, node.Keys)
	}
	return segment, nil
}

// requisite are the places where the volume may be, sorted.
func (in Input) requisite(selected Segment) []Segment {
	switch {
	case selected != nil && in.Strict:
		return []Segment{selected}
	case len(in.Allowed) > 0:
		return unique(flatten(in.Allowed))
	default:
		return in.aggregate()
	}
}

// aggregate gathers the places of all nodes that have the same keys as one of them: the selected, or one that the claim's identity chooses. Keys of one node
// only are trusted, so that a bad node cannot widen the choice.
func (in Input) aggregate() []Segment {
	nodes := slices.SortedFunc(slices.Values(in.Nodes), func(a, b Node) int { return cmp.Compare(a.Name, b.Name) })
	nodes = slices.DeleteFunc(nodes, func(n Node) bool { return len(n.Keys) == 0 })
	if len(nodes) == 0 {
		return nil
	}
	source := nodes[int(hash(in.UID))%len(nodes)]
	if i := slices.IndexFunc(nodes, func(n Node) bool { return n.Name == in.Selected }); i >= 0 {
		source = nodes[i]
	}
	var segments []Segment
	for _, node := range nodes {
		if segment, ok := node.segment(source.Keys); ok && sameKeys(node.Keys, source.Keys) {
			segments = append(segments, segment)
		}
	}
	return unique(segments)
}

// segment is the place of the node by its labels; false if one is missing.
func (n Node) segment(keys []string) (Segment, bool) {
	segment := Segment{}
	for _, key := range keys {
		value, ok := n.Labels[key]
		if !ok {
			return nil, false
		}
		segment[key] = value
	}
	return segment, true
}

func sameKeys(a, b []string) bool {
	set := func(keys []string) []string { return slices.Compact(slices.Sorted(slices.Values(keys))) }
	return slices.Equal(set(a), set(b))
}

// within tells whether a place is the same as, or a larger one around, the other.
func (s Segment) within(other Segment) bool {
	for key, value := range s {
		if got, ok := other[key]; !ok || got != value {
			return false
		}
	}
	return true
}

// String is the same for equal segments.
func (s Segment) String() string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(s)) {
		parts = append(parts, fmt.Sprintf("%q=%q", key, s[key]))
	}
	return strings.Join(parts, ",")
}

// unique sorts segments and leaves each once.
func unique(segments []Segment) []Segment {
	byText := map[string]Segment{}
	for _, s := range segments {
		byText[s.String()] = s
	}
	var result []Segment
	for _, text := range slices.Sorted(maps.Keys(byText)) {
		result = append(result, byText[text])
	}
	return result
}

// rotated is the list beginning at an index, with what was before it at the end.
func rotated(segments []Segment, first int) []Segment {
	return slices.Concat(segments[first:], segments[:first])
}

// flatten gives one segment for each combination of values of each term.
func flatten(terms []corev1.TopologySelectorTerm) (all []Segment) {
	for _, term := range terms {
		combined := []Segment{{}}
		for _, expression := range term.MatchLabelExpressions {
			var next []Segment
			for _, segment := range combined {
				for _, value := range expression.Values {
					extended := maps.Clone(segment)
					extended[expression.Key] = value
					next = append(next, extended)
				}
			}
			combined = next
		}
		if len(term.MatchLabelExpressions) > 0 {
			all = append(all, combined...)
		}
	}
	return all
}

// spread chooses the segment for a claim of a StatefulSet, <template>-<set>-<ordinal>: successive ordinals get successive segments, and all
// templates of one pod the same.
func spread(claim string, segments int) (int, bool) {
	set, ordinal, ok := cutLast(claim)
	if !ok || ordinal == "" {
		return 0, false
	}
	number := 0
	for _, digit := range ordinal {
		if digit < '0' || digit > '9' {
			return 0, false
		}
		number = (number*10 + int(digit-'0')) % segments
	}
	if _, name, ok := cutLast(set); ok {
		set = name
	}
	return (int(hash(set)%uint32(segments)) + number) % segments, true
}

func cutLast(text string) (before, after string, found bool) {
	i := strings.LastIndexByte(text, '-')
	if i <= 0 {
		return text, "", false
	}
	return text[:i], text[i+1:], true
}

func hash(text string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(text))
	return h.Sum32()
}

func topologies(segments []Segment) (result []*csi.Topology) {
	for _, segment := range segments {
		result = append(result, &csi.Topology{Segments: segment})
	}
	return result
}
