package session

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/slipway-platform/slipway/storage/csi/topology"
)

// Nodes returns the nodes on which the driver is registered. The caller's controller must declare
// that it reads the Node and CSINode caches. A CSINode without a Node is ignored.
func (s *Session) Nodes() ([]topology.Node, error) {
	csiNodes, err := s.Informers.Storage().V1().CSINodes().Lister().List(labels.Everything())
	if err != nil {
		return nil, fmt.Errorf("list CSINodes: %w", err)
	}
	var result []topology.Node
	for _, csiNode := range csiNodes {
		node, err := s.Informers.Core().V1().Nodes().Lister().Get(csiNode.Name)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read Node %q: %w", csiNode.Name, err)
		}
		for _, d := range csiNode.Spec.Drivers {
			if d.Name == s.Description.Name && d.NodeID != "" {
				result = append(result, topology.Node{Name: node.Name, Labels: node.Labels, Keys: d.TopologyKeys})
			}
		}
	}
	return result, nil
}
