package node

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// SetLabel sets a label of a node to "true".
func SetLabel(ctx context.Context, client kubernetes.Interface, node, label string) error {
	return patchLabel(ctx, client, node, label, `"true"`)
}

// RemoveLabel removes a label of a node.
func RemoveLabel(ctx context.Context, client kubernetes.Interface, node, label string) error {
	return patchLabel(ctx, client, node, label, "null")
}

// patchLabel sets a label of a node to a value in JSON.
func patchLabel(ctx context.Context, client kubernetes.Interface, node, label, value string) error {
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%s}}}`, label, value)
	_, err := client.CoreV1().Nodes().Patch(ctx, node, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("label node %q: %w", node, err)
	}
	return nil
}
