package topology

import (
	"maps"
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
)

// NodeAffinity is where a volume can be used, from the driver's answer; nil means everywhere. It has one term for each segment and one value for each key
// (the document's form 1), in a stable order.
func NodeAffinity(accessible []*csi.Topology) *corev1.VolumeNodeAffinity {
	var segments []Segment
	for _, topology := range accessible {
		if len(topology.GetSegments()) > 0 {
			segments = append(segments, topology.GetSegments())
		}
	}
	if len(segments) == 0 {
		return nil
	}
	var terms []corev1.NodeSelectorTerm
	for _, segment := range unique(segments) {
		var expressions []corev1.NodeSelectorRequirement
		for _, key := range slices.Sorted(maps.Keys(segment)) {
			expressions = append(expressions, corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{segment[key]}})
		}
		terms = append(terms, corev1.NodeSelectorTerm{MatchExpressions: expressions})
	}
	return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: terms}}
}

// Segments are the distinct places of all nodes, each by its own keys, sorted: what capacity is tracked for.
func Segments(nodes []Node) []Segment {
	var all []Segment
	for _, node := range nodes {
		if segment, ok := node.segment(node.Keys); ok && len(node.Keys) > 0 {
			all = append(all, segment)
		}
	}
	return unique(all)
}
