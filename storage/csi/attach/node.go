package attach

import (
	"encoding/json"
	"fmt"

	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// oldNodeIDAnnotation is the Node annotation that maps drivers to node IDs as JSON. CSINode has
// replaced it.
const oldNodeIDAnnotation = "csi.volume.kubernetes.io/nodeid"

// nodeID returns the ID that the driver uses for a node. It reads the ID from the CSINode or, if
// the CSINode does not contain it, from the deprecated annotation on the Node.
func (a *attacher) nodeID(nodeName string) (string, error) {
	csiNode, err := a.csiNodes.Get(nodeName)
	if err != nil && !apierrors.IsNotFound(err) {
		return "", fmt.Errorf("read CSINode %q: %w", nodeName, err)
	}
	if err == nil {
		for _, d := range csiNode.Spec.Drivers {
			if d.Name == a.name && d.NodeID != "" {
				return d.NodeID, nil
			}
		}
	}
	node, err := a.nodes.Get(nodeName)
	if err != nil {
		return "", fmt.Errorf("find ID of node %q for CSI driver %q: no CSINode contains it, and the Node cannot be read: %w", nodeName, a.name, err)
	}
	return a.annotatedID(nodeName, node.Annotations[oldNodeIDAnnotation])
}

func (a *attacher) annotatedID(nodeName, text string) (string, error) {
	ids := map[string]string{}
	if text != "" {
		if err := json.Unmarshal([]byte(text), &ids); err != nil {
			return "", fmt.Errorf("parse annotation %s of node %q: %w", oldNodeIDAnnotation, nodeName, err)
		}
	}
	if id := ids[a.name]; id != "" {
		return id, nil
	}
	return "", fmt.Errorf("find ID of node %q for CSI driver %q: the driver is not registered there", nodeName, a.name)
}

// attachedNodeID returns the node ID that was used to attach the volume. The ID is available even
// if the node no longer exists.
func (a *attacher) attachedNodeID(va *storagev1.VolumeAttachment) (string, error) {
	if id := va.Annotations[nodeIDAnnotation]; id != "" {
		return id, nil
	}
	return a.nodeID(va.Spec.NodeName)
}
