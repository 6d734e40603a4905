package hosts

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/slipway-platform/slipway/controller"
	"github.com/slipway-platform/slipway/internal/nodegroup"
	"github.com/slipway-platform/slipway/pki/join"
)

// LeaveAnnotation on a Node means that its host is leaving the cluster. `slipway leave` sets the
// annotation.
const LeaveAnnotation = "slipway.openshift.io/leave"

// finalizer delays the deletion of a Node until its pods have terminated and its certificates are
// revoked.
const finalizer = "slipway.openshift.io/host"

const (
	// drainInterval is the interval between attempts to evict pods.
	drainInterval = time.Second
	// drainTimeout is the maximum duration of a drain if an administrator deletes the Node.
	drainTimeout = time.Minute
	// voidDelay is how long it takes until all API servers reject the certificates of a removed
	// host. It includes a margin for times in whole seconds and for an in-flight request.
	voidDelay = 4 * refreshInterval
)

// remover drains the nodes of hosts that are leaving and revokes their certificates.
type remover struct {
	client   kubernetes.Interface
	nodes    corelisters.NodeLister
	register register
	// removeMaster removes the data that the cluster stores about a master.
	removeMaster func(ctx context.Context, node, address string) error
}

// reconcile performs the next step for a joined host's node.
func (r *remover) reconcile(ctx context.Context, key controller.Key) error {
	hosts, err := r.register.read(ctx)
	if err != nil {
		return err
	}
	host, joined := hosts[key.Name]
	if !joined {
		return nil
	}
	node, err := r.nodes.Get(key.Name)
	if apierrors.IsNotFound(err) {
		// The Node does not exist. It was deleted before adopt added the finalizer, and the
		// deletion enqueued its key.
		if host.removed() {
			return nil
		}
		return r.void(ctx, key.Name)
	}
	if err != nil {
		return err
	}
	hasFinalizer := slices.Contains(node.Finalizers, finalizer)
	switch {
	case node.DeletionTimestamp == nil && host.removed():
		// During the removal, an in-flight request from the host created its Node again. Delete the
		// new Node.
		return r.delete(ctx, node)
	case node.DeletionTimestamp == nil && !hasFinalizer:
		return r.adopt(ctx, node, host)
	case node.DeletionTimestamp == nil && node.Annotations[LeaveAnnotation] != "":
		return r.leave(ctx, node)
	case node.DeletionTimestamp != nil && hasFinalizer:
		return r.finalize(ctx, node, host)
	}
	return nil
}

// adopt adds the finalizer and the node group to a new Node.
func (r *remover) adopt(ctx context.Context, node *corev1.Node, host Host) error {
	// The patch adds the finalizer to existing finalizers.
	metadata := map[string]any{"finalizers": []string{finalizer}}
	if host.Group != "" {
		metadata["annotations"] = map[string]string{nodegroup.GroupAnnotation: nodegroup.ConfigMapOf(host.Group)}
	}
	return r.patch(ctx, node.Name, map[string]any{"metadata": metadata})
}

// leave drains a node. When all its pods that can be evicted have terminated, leave deletes the
// Node.
func (r *remover) leave(ctx context.Context, node *corev1.Node) error {
	empty, err := r.drain(ctx, node)
	if err != nil {
		return err
	}
	if !empty {
		return controller.RequeueAfter(drainInterval)
	}
	return r.delete(ctx, node)
}

func (r *remover) delete(ctx context.Context, node *corev1.Node) error {
	err := r.client.CoreV1().Nodes().Delete(ctx, node.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(node.UID))})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete node %q: %w", node.Name, err)
	}
	return nil
}

// finalize drains a deleted Node while its kubelet can still terminate pods, and revokes the host's
// certificates. It removes the finalizer when all API servers reject these certificates. If the
// finalizer were removed earlier, the kubelet could create the Node again.
func (r *remover) finalize(ctx context.Context, node *corev1.Node, host Host) error {
	isVoid := host.Removed != nil && !host.Removed.Before(node.DeletionTimestamp)
	if isVoid {
		if remaining := time.Until(host.Removed.Add(voidDelay)); remaining > 0 {
			return controller.RequeueAfter(remaining)
		}
		if err := r.cancelRequests(ctx, node.Name); err != nil {
			return err
		}
		if host.Role == join.RoleMaster {
			if err := r.removeMaster(ctx, node.Name, host.Address); err != nil {
				return err
			}
		}
		return r.patch(ctx, node.Name, map[string]any{"metadata": map[string]any{
			"$deleteFromPrimitiveList/finalizers": []string{finalizer},
		}})
	}
	if runsPods(node) && time.Since(node.DeletionTimestamp.Time) < drainTimeout {
		empty, err := r.drain(ctx, node)
		if err != nil {
			return err
		}
		if !empty {
			return controller.RequeueAfter(drainInterval)
		}
	}
	if err := r.void(ctx, node.Name); err != nil {
		return err
	}
	return controller.RequeueAfter(voidDelay)
}

// void records that a host has been removed, so that the API server rejects its certificates.
func (r *remover) void(ctx context.Context, name string) error {
	return r.register.change(ctx, name, func(h *Host) {
		removed := now()
		if !h.Joined.Before(&removed) { // the host joined in the same second
			removed = metav1.Time{Time: h.Joined.Add(time.Second)}
		}
		h.Removed = &removed
	})
}

// cancelRequests deletes a removed host's certificate signing requests, except requests whose
// certificates have been issued. Otherwise, a request that is still pending when the host joins
// again could give the removed host a valid certificate.
func (r *remover) cancelRequests(ctx context.Context, name string) error {
	requests := r.client.CertificatesV1().CertificateSigningRequests()
	list, err := requests.List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list signing requests: %w", err)
	}
	for _, request := range list.Items {
		if request.Spec.Username != userOfNode+name || len(request.Status.Certificate) > 0 {
			continue
		}
		err := requests.Delete(ctx, request.Name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete signing request %q: %w", request.Name, err)
		}
	}
	return nil
}

// drain cordons a node and evicts its pods. It reports whether all pods that can be evicted have
// terminated.
func (r *remover) drain(ctx context.Context, node *corev1.Node) (empty bool, err error) {
	if !node.Spec.Unschedulable {
		if err := r.patch(ctx, node.Name, map[string]any{"spec": map[string]any{"unschedulable": true}}); err != nil {
			return false, err
		}
	}
	pods, err := r.client.CoreV1().Pods("").List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node.Name).String(),
	})
	if err != nil {
		return false, fmt.Errorf("list pods of node %q: %w", node.Name, err)
	}
	empty = true
	for i := range pods.Items {
		pod := &pods.Items[i]
		if stays(pod) {
			continue
		}
		empty = false
		if pod.DeletionTimestamp != nil {
			continue
		}
		err := r.client.CoreV1().Pods(pod.Namespace).EvictV1(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}})
		// Ignore status 429, which means that a PodDisruptionBudget does not allow the eviction until
		// other pods are ready.
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsTooManyRequests(err) {
			return false, fmt.Errorf("evict pod %s/%s: %w", pod.Namespace, pod.Name, err)
		}
	}
	return empty, nil
}

// stays reports whether a pod stays on the node until the host stops. This is the case for daemon
// set pods, static pods and pods that have terminated.
func stays(pod *corev1.Pod) bool {
	_, static := pod.Annotations[corev1.MirrorPodAnnotationKey]
	owner := metav1.GetControllerOf(pod)
	ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	return static || ended || owner != nil && owner.Kind == "DaemonSet"
}

// runsPods reports whether a node's kubelet can terminate pods: the node is ready, and no
// administrator has reported that the host is off.
func runsPods(node *corev1.Node) bool {
	off := slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeOutOfService })
	return !off && slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

func (r *remover) patch(ctx context.Context, node string, change map[string]any) error {
	data, err := json.Marshal(change)
	if err != nil {
		return fmt.Errorf("encode patch of node %q: %w", node, err)
	}
	_, err = r.client.CoreV1().Nodes().Patch(ctx, node, types.StrategicMergePatchType, data, metav1.PatchOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("patch node %q: %w", node, err)
	}
	return nil
}
