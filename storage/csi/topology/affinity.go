package topology

import (
	"maps"
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
)

// NodeAffinity converts the driver's accessible topology to a node affinity. A nil result means
// that the volume is accessible from all nodes. The result has one term per segment and one value
// per key (form 1 in the document "CSI Volume Plugins in Kubernetes"), in a stable order.
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

// Segments returns the distinct segments of all nodes in sorted order. Each node's segment uses the
// node's own topology keys. The capacity package tracks capacity for these segments.
func Segments(nodes []Node) []Segment {
	var segments []Segment
	for _, node := range nodes {
		if segment, ok := node.segment(node.Keys); ok && len(node.Keys) > 0 {
			segments = append(segments, segment)
		}
	}
	return unique(segments)
}
