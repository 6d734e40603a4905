// Package nodegroup applies the labels and the configuration in a node group's ConfigMap to the
// group's nodes (see package internal/nodegroup).
//
// A new configuration is rolled out to a group's nodes one at a time. The next node receives the
// configuration when the previous node has restarted with it. If a node rejects the configuration,
// the other nodes keep the previous configuration.
package nodegroup

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/slipway-platform/slipway/controller"
	"github.com/slipway-platform/slipway/internal/nodegroup"
)

// lostTimeout is how long a node can be NotReady before the rollout continues without it.
const lostTimeout = 10 * time.Minute

// Controllers is the component that applies the node group configurations to nodes.
type Controllers struct {
	// Deps provides the shared clients and caches.
	Deps *controller.Deps
}

// Name returns the component's name.
func (*Controllers) Name() string { return "node-groups" }

// Run runs the controller until ctx is done.
func (c *Controllers) Run(ctx context.Context, ready func()) error {
	nodes := c.Deps.Informers.Core().V1().Nodes()
	factory := informers.NewSharedInformerFactoryWithOptions(c.Deps.Kube, 0, informers.WithNamespace(nodegroup.Namespace))
	configMaps := factory.Core().V1().ConfigMaps()
	r := &rollout{client: c.Deps.Kube, nodes: nodes.Lister(), configMaps: configMaps.Lister()}
	manager := controller.Manager{{
		Name: "node groups", Workers: 2, Reconcile: r.reconcile,
		Watches: []controller.Watch{
			{Informer: configMaps.Informer()},
			{Informer: nodes.Informer(), Keys: groupOf, Changed: relevant},
		},
	}}
	c.Deps.Start()
	defer controller.Start(ctx, factory)()
	return manager.Run(ctx, ready)
}

// groupOf returns the key of the ConfigMap for a node's group.
func groupOf(object any) []controller.Key {
	node, ok := object.(*corev1.Node)
	if !ok || node.Annotations[nodegroup.GroupAnnotation] == "" {
		return nil
	}
	return []controller.Key{{Namespace: nodegroup.Namespace, Name: node.Annotations[nodegroup.GroupAnnotation]}}
}

// relevant reports whether a change to a Node can require reconciliation. Most changes are status
// updates, which occur every few seconds and require none.
func relevant(old, new any) bool {
	before, after := old.(*corev1.Node), new.(*corev1.Node)
	for _, key := range []string{
		nodegroup.GroupAnnotation, nodegroup.DesiredAnnotation, nodegroup.LabelsAnnotation, nodegroup.HashAnnotation, nodegroup.RefusedAnnotation,
	} {
		if before.Annotations[key] != after.Annotations[key] {
			return true
		}
	}
	return ready(before) != ready(after) || !labels.Equals(before.Labels, after.Labels)
}

// rollout reconciles the nodes in a group.
type rollout struct {
	client     kubernetes.Interface
	nodes      corelisters.NodeLister
	configMaps corelisters.ConfigMapLister
}

// reconcile performs the next step for a group. If the ConfigMap is deleted, nodes keep its
// configuration.
func (r *rollout) reconcile(ctx context.Context, key controller.Key) error {
	if !strings.HasPrefix(key.Name, nodegroup.Prefix) {
		return nil
	}
	object, err := r.configMaps.ConfigMaps(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	content, exists := object.Data[nodegroup.Key]
	if !exists {
		return fmt.Errorf("ConfigMap %s/%s has no key %s", object.Namespace, object.Name, nodegroup.Key)
	}
	desired, err := nodegroup.Labels(content)
	if err != nil {
		return err
	}
	nodes, err := r.members(key.Name)
	if err != nil {
		return err
	}
	for _, node := range nodes {
		if err := r.label(ctx, node, desired); err != nil {
			return err
		}
	}
	return r.next(ctx, nodes, nodegroup.Desired(object.Name, content), nodegroup.Hash(content))
}

// members returns the nodes in a group, sorted by name.
func (r *rollout) members(group string) ([]*corev1.Node, error) {
	all, err := r.nodes.List(labels.Everything())
	if err != nil {
		return nil, err
	}
	nodes := slices.DeleteFunc(slices.Clone(all), func(node *corev1.Node) bool {
		return node.Annotations[nodegroup.GroupAnnotation] != group || node.DeletionTimestamp != nil
	})
	slices.SortFunc(nodes, func(a, b *corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	return nodes, nil
}

// next sets the desired configuration of the next node when it is the node's turn.
func (r *rollout) next(ctx context.Context, nodes []*corev1.Node, desired, hash string) error {
	var candidate *corev1.Node
	wait := false
	for _, node := range nodes {
		named := node.Annotations[nodegroup.DesiredAnnotation] == desired
		switch {
		case node.Annotations[nodegroup.HashAnnotation] == hash:
			if !named { // after a rejection, the previous content was restored
				return r.annotate(ctx, node, desired)
			}
		case node.Annotations[nodegroup.RefusedAnnotation] == hash:
			return nil
		case named && !lost(node):
			wait = true
		case !named && candidate == nil && ready(node):
			candidate = node
		}
	}
	switch {
	case wait:
		return controller.RequeueAfter(lostTimeout)
	case candidate == nil:
		return nil
	}
	slog.Info("assigning group configuration to node", "node", candidate.Name, "configuration", desired)
	return r.annotate(ctx, candidate, desired)
}

func (r *rollout) annotate(ctx context.Context, node *corev1.Node, desired string) error {
	return r.patch(ctx, node.Name, map[string]any{"annotations": map[string]string{nodegroup.DesiredAnnotation: desired}})
}

// label adds a group's labels to a node and removes labels that the group no longer has.
func (r *rollout) label(ctx context.Context, node *corev1.Node, desired map[string]string) error {
	changes := map[string]any{}
	for _, key := range strings.Split(node.Annotations[nodegroup.LabelsAnnotation], ",") {
		if _, exists := node.Labels[key]; exists {
			if _, keep := desired[key]; !keep {
				changes[key] = nil
			}
		}
	}
	for key, value := range desired {
		if existing, exists := node.Labels[key]; !exists || existing != value {
			changes[key] = value
		}
	}
	keys := nodegroup.Keys(desired)
	if len(changes) == 0 && node.Annotations[nodegroup.LabelsAnnotation] == keys {
		return nil
	}
	return r.patch(ctx, node.Name, map[string]any{"labels": changes, "annotations": map[string]string{nodegroup.LabelsAnnotation: keys}})
}

func (r *rollout) patch(ctx context.Context, node string, metadata map[string]any) error {
	data, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return fmt.Errorf("encode patch of node %q: %w", node, err)
	}
	_, err = r.client.CoreV1().Nodes().Patch(ctx, node, types.StrategicMergePatchType, data, metav1.PatchOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("patch node %q: %w", node, err)
	}
	return nil
}

func readyCondition(node *corev1.Node) *corev1.NodeCondition {
	for i, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return &node.Status.Conditions[i]
		}
	}
	return nil
}

func ready(node *corev1.Node) bool {
	condition := readyCondition(node)
	return condition != nil && condition.Status == corev1.ConditionTrue
}

// lost reports whether a node has been NotReady for longer than lostTimeout.
func lost(node *corev1.Node) bool {
	condition := readyCondition(node)
	return condition != nil && condition.Status != corev1.ConditionTrue && time.Since(condition.LastTransitionTime.Time) > lostTimeout
}
