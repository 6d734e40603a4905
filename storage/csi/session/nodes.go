package session

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/slipway-platform/slipway/storage/csi/topology"
)

// Nodes are the nodes on which the driver is registered. A loop that asks must read the caches of Nodes and CSINodes. A CSINode whose Node is not there, or not any more, is left out.
func (s *Session) Nodes() ([]topology.Node, error) {
	registered, err := s.Informers.Storage().V1().CSINodes().Lister().List(labels.Everything())
	if err != nil {
		return nil, fmt.Errorf("list CSINodes: %w", err)
	}
	var found []topology.Node
	for _, csiNode := range registered {
		node, err := s.Informers.Core().V1().Nodes().Lister().Get(csiNode.Name)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read Node %q: %w", csiNode.Name, err)
		}
		for _, d := range csiNode.Spec.Drivers {
			if d.Name == s.Description.Name && d.NodeID != "" {
				found = append(found, topology.Node{Name: node.Name, Labels: node.Labels, Keys: d.TopologyKeys})
			}
		}
	}
	return found, nil
}
