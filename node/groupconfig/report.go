package groupconfig

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-platform/slipway/internal/nodegroup"
)

// Reasons for the condition and for events.
const (
	reasonApplied  = "NodeConfigApplied"
	reasonRefused  = "NodeConfigRefused"
	reasonReverted = "NodeConfigReverted"
)

// maxMessageBytes is the maximum length of the condition's message and of event messages, in bytes.
const maxMessageBytes = 1000

// report writes the state of the configuration to the Node: the condition, an event if the state
// has changed, and annotations. The annotations are written last, because they complete the control
// plane's attempt.
func (s *Sync) report(ctx context.Context, node *corev1.Node) error {
	if s.record.Hash == "" && s.record.Refused == "" {
		return nil // the node has no group
	}
	if node.Annotations[nodegroup.HashAnnotation] == s.record.Hash && node.Annotations[nodegroup.RefusedAnnotation] == s.record.Refused {
		return nil
	}
	condition := corev1.NodeCondition{
		Type: nodegroup.ConditionType, Status: corev1.ConditionFalse, Reason: reasonApplied,
		Message: "the configuration " + s.record.Hash + " of the node group is in effect",
	}
	if s.record.Refused != "" {
		condition.Status, condition.Reason = corev1.ConditionTrue, reasonRefused
		if s.record.Reverted {
			condition.Reason = reasonReverted
		}
		condition.Message = s.record.Reason
	}
	condition.Message = strings.ToValidUTF8(condition.Message[:min(len(condition.Message), maxMessageBytes)], "")
	condition.LastTransitionTime, condition.LastHeartbeatTime = metav1.Now(), metav1.Now()
	if err := s.patch(ctx, "status", map[string]any{"status": map[string]any{"conditions": []corev1.NodeCondition{condition}}}); err != nil {
		return err
	}
	s.event(ctx, node, condition)
	annotations := map[string]any{nodegroup.HashAnnotation: orNull(s.record.Hash), nodegroup.RefusedAnnotation: orNull(s.record.Refused)}
	return s.patch(ctx, "", map[string]any{"metadata": map[string]any{"annotations": annotations}})
}

func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}

func (s *Sync) patch(ctx context.Context, subresource string, change map[string]any) error {
	data, err := json.Marshal(change)
	if err != nil {
		return fmt.Errorf("encode change of node %q: %w", s.Node, err)
	}
	var subresources []string
	if subresource != "" {
		subresources = append(subresources, subresource)
	}
	_, err = s.Client.CoreV1().Nodes().Patch(ctx, s.Node, types.StrategicMergePatchType, data, metav1.PatchOptions{}, subresources...)
	if err != nil {
		return fmt.Errorf("change node %q: %w", s.Node, err)
	}
	return nil
}

// event creates an event for the Node. If this fails, the error is only logged, because the
// condition contains the same information.
func (s *Sync) event(ctx context.Context, node *corev1.Node, condition corev1.NodeCondition) {
	kind := corev1.EventTypeNormal
	if condition.Status == corev1.ConditionTrue {
		kind = corev1.EventTypeWarning
	}
	now := metav1.Now()
	_, err := s.Client.CoreV1().Events(metav1.NamespaceDefault).Create(ctx, &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{GenerateName: s.Node + ".", Namespace: metav1.NamespaceDefault},
		// Use the name as the UID, like the kubelet, because `oc describe node` selects events by
		// this UID.
		InvolvedObject: corev1.ObjectReference{Kind: "Node", Name: node.Name, UID: types.UID(node.Name)},
		Type:           kind, Reason: condition.Reason, Message: condition.Message,
		Source:         corev1.EventSource{Component: "node-config", Host: s.Node},
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
	}, metav1.CreateOptions{})
	if err != nil {
		slog.Warn("cannot create node event", "event", condition.Reason, "error", err)
	}
}
