// Package topology derives a new volume's topology requirement from the nodes and the StorageClass,
// and a PersistentVolume's node affinity from the driver's response (document "CSI Volume Plugins
// in Kubernetes", Provisioning and Deleting; Topology Representation). It has no side effects.
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

// Segment maps topology keys to values.
type Segment map[string]string

// Node is a node on which the driver is registered.
type Node struct {
	Name   string
	Labels map[string]string
	// Keys lists the driver's topology keys on the node.
	Keys []string
}

// Input is the input of Requirement.
type Input struct {
	// Nodes lists all nodes on which the driver is registered, in any order.
	Nodes []Node
	// Selected is the node that the scheduler selected, or "" for immediate binding.
	Selected string
	// Strict restricts the requisite topologies to the selected node's segment.
	Strict bool
	// Allowed holds the StorageClass's AllowedTopologies.
	Allowed []corev1.TopologySelectorTerm
	// Claim is the claim's name. If Spread is set, claims that are named like a StatefulSet's
	// claims are spread across the segments.
	Claim  string
	Spread bool
	// UID is the claim's UID. If no node is selected, it determines the node whose keys are used.
	UID string
}

// Requirement returns the topology requirement for CreateVolume, or nil if there is none. The
// result does not depend on the order of nodes and allowed topologies.
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
		start := slices.IndexFunc(requisite, func(s Segment) bool { return s.covers(selected) })
		if start < 0 {
			return nil, fmt.Errorf("derive topology: the allowed topologies exclude the selected node %q", in.Selected)
		}
		result.Preferred = topologies(rotate(requisite, start))
	case in.Spread:
		if start, ok := spread(in.Claim, len(requisite)); ok {
			result.Preferred = topologies(rotate(requisite, start))
		}
	}
	return result, nil
}

// selectedSegment returns the selected node's segment, or nil if no node is selected. The node must
// run the driver and have a label for each topology key. Otherwise, the pod might not be able to
// access the volume.
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
		return nil, fmt.Errorf("derive topology: the selected node %q lacks at least one of the labels %q", in.Selected, node.Keys)
	}
	return segment, nil
}

// requisite returns the segments in which the volume can be created, in sorted order.
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

// aggregate returns the segments of all nodes that have the same keys as the selected node. If no
// node is selected, the claim's UID determines the node. aggregate uses the keys of only one node,
// so that a misconfigured node cannot extend the result.
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

// segment returns the node's values for the topology keys. It returns false if one of these labels
// is missing.
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
	normalize := func(keys []string) []string { return slices.Compact(slices.Sorted(slices.Values(keys))) }
	return slices.Equal(normalize(a), normalize(b))
}

// covers reports whether other has all keys of segment s, with the same values.
func (s Segment) covers(other Segment) bool {
	for key, value := range s {
		if got, ok := other[key]; !ok || got != value {
			return false
		}
	}
	return true
}

// String returns a canonical form of the segment: equal segments return the same string.
func (s Segment) String() string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(s)) {
		parts = append(parts, fmt.Sprintf("%q=%q", key, s[key]))
	}
	return strings.Join(parts, ",")
}

// unique returns the distinct segments in sorted order.
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

// rotate returns the segments starting at index start, followed by the segments before it.
func rotate(segments []Segment, start int) []Segment {
	return slices.Concat(segments[start:], segments[:start])
}

// flatten returns one segment for each combination of a term's values, for all terms.
func flatten(terms []corev1.TopologySelectorTerm) (segments []Segment) {
	for _, term := range terms {
		combined := []Segment{{}}
		for _, expression := range term.MatchLabelExpressions {
			var expanded []Segment
			for _, segment := range combined {
				for _, value := range expression.Values {
					longer := maps.Clone(segment)
					longer[expression.Key] = value
					expanded = append(expanded, longer)
				}
			}
			combined = expanded
		}
		if len(term.MatchLabelExpressions) > 0 {
			segments = append(segments, combined...)
		}
	}
	return segments
}

// spread returns the index of the segment for a claim named <template>-<set>-<ordinal>, as in a
// StatefulSet, and false for other names. Successive ordinals map to successive segments, and all
// templates of the same pod map to the same segment.
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

func cutLast(text string) (before, after string, ok bool) {
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
