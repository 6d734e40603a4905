package measure

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
)

// leaseInterval is the kubelet's lease renewal interval.
const leaseInterval = 10 * time.Second

// hollow is a simulated node. Like a kubelet and a service proxy, it renews its lease, watches
// objects, and requests tokens for its pods. It creates events for the pods and reports them as
// running. It starts no containers.
type hollow struct {
	client kubernetes.Interface
	name   string
	number int
}

// register creates the Node object with its status, and the node's lease.
func (h hollow) register(ctx context.Context) error {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: h.name, Labels: map[string]string{
		"hollow": "true", "kubernetes.io/hostname": h.name, "region": "region", "zone": fmt.Sprintf("zone-%d", h.number%4),
	}}}
	if _, err := h.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
		return err
	}
	room := corev1.ResourceList{"cpu": apiresource.MustParse("32"), "memory": apiresource.MustParse("128Gi"), "pods": apiresource.MustParse("250")}
	status := corev1.NodeStatus{
		Capacity: room, Allocatable: room,
		Addresses:  []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: h.address(0)}},
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", LastHeartbeatTime: metav1.Now()}},
	}
	// Use a patch, because controllers change the node concurrently, so an update could conflict.
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return err
	}
	if _, err := h.client.CoreV1().Nodes().PatchStatus(ctx, h.name, patch); err != nil {
		return err
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: h.name}, Spec: coordinationv1.LeaseSpec{
		HolderIdentity: &h.name, LeaseDurationSeconds: ptr.To(int32(40)), RenewTime: ptr.To(metav1.NowMicro()),
	}}
	_, err = h.client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Create(ctx, lease, metav1.CreateOptions{})
	return err
}

// address returns the address of the node's pod with the given number, or the node's address if the
// number is 0.
func (h hollow) address(pod int) string {
	if pod == 0 {
		return fmt.Sprintf("203.%d.%d.1", h.number>>8, h.number&255)
	}
	return fmt.Sprintf("10.%d.%d.%d", 200+h.number>>8, h.number&255, pod)
}

// run simulates the node until ctx is done.
func (h hollow) run(ctx context.Context) {
	var tasks sync.WaitGroup
	tasks.Go(func() { h.renew(ctx) })
	tasks.Go(func() {
		for ctx.Err() == nil {
			h.follow(ctx)
		}
	})
	for _, w := range h.watches() {
		tasks.Go(func() {
			for ctx.Err() == nil {
				w.drain(ctx)
			}
		})
	}
	tasks.Wait()
}

// objects is a set of objects that a node watches.
type objects struct {
	open     func(context.Context, metav1.ListOptions) (watch.Interface, error)
	selector fields.Selector
}

// watches returns the watches of a kubelet and a service proxy, except the kubelet's watch for
// pods.
func (h hollow) watches() []objects {
	core, all := h.client.CoreV1(), fields.Everything()
	own := fields.OneTermEqualSelector("metadata.name", h.name)
	root := fields.OneTermEqualSelector("metadata.name", "kube-root-ca.crt")
	return []objects{
		// The kubelet and the service proxy both watch the node.
		{core.Nodes().Watch, own}, {core.Nodes().Watch, own},
		{core.Services(metav1.NamespaceAll).Watch, all}, {core.Services(metav1.NamespaceAll).Watch, all},
		{h.client.DiscoveryV1().EndpointSlices(metav1.NamespaceAll).Watch, all},
		{h.client.NetworkingV1().ServiceCIDRs().Watch, all},
		{h.client.NodeV1().RuntimeClasses().Watch, all},
		{h.client.StorageV1().CSIDrivers().Watch, all},
		{core.ConfigMaps(loadNamespace).Watch, root}, // every pod has a volume with this ConfigMap
	}
}

// drain reads a watch's events until the watch ends.
func (o objects) drain(ctx context.Context) {
	w, err := o.open(ctx, metav1.ListOptions{FieldSelector: o.selector.String()})
	if err != nil {
		return
	}
	defer w.Stop()
	for range w.ResultChan() {
	}
}

// renew renews the node's lease until ctx is done.
func (h hollow) renew(ctx context.Context) {
	ticker := time.NewTicker(leaseInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		patch := fmt.Appendf(nil, `{"spec":{"renewTime":%q}}`, metav1.NowMicro().UTC().Format(metav1.RFC3339Micro))
		// Ignore an error, because a later renewal can still succeed before the lease expires.
		_, _ = h.client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Patch(ctx, h.name, types.MergePatchType, patch, metav1.PatchOptions{})
	}
}

// follow watches the node's pods until the watch ends.
func (h hollow) follow(ctx context.Context) {
	pods, err := h.client.CoreV1().Pods(metav1.NamespaceAll).Watch(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("spec.nodeName", h.name).String()})
	if err != nil {
		return
	}
	defer pods.Stop()
	count := 0
	for event := range pods.ResultChan() {
		pod, ok := event.Object.(*corev1.Pod)
		switch {
		case !ok || event.Type == watch.Deleted:
		case pod.DeletionTimestamp != nil:
			_ = h.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(0))})
		case pod.Status.Phase == corev1.PodPending:
			count++
			h.start(ctx, pod, h.address(1+count%250))
		}
	}
}

// start requests a token for a pod, creates events for the pod, and reports that the pod is
// running.
func (h hollow) start(ctx context.Context, pod *corev1.Pod, address string) {
	now := metav1.Now()
	// Ignore errors, because failed requests do not affect the measured times.
	_, _ = h.client.CoreV1().ServiceAccounts(pod.Namespace).CreateToken(ctx, pod.Spec.ServiceAccountName, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{
			ExpirationSeconds: ptr.To(int64(3607)), BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID},
		},
	}, metav1.CreateOptions{})
	for _, reason := range []string{"Pulled", "Created", "Started"} {
		_, _ = h.client.CoreV1().Events(pod.Namespace).Create(ctx, &corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{Name: pod.Name + "." + strings.ToLower(reason)},
			InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
			Reason:         reason, Type: corev1.EventTypeNormal, Count: 1, FirstTimestamp: now, LastTimestamp: now,
			Source: corev1.EventSource{Component: "kubelet", Host: h.name},
		}, metav1.CreateOptions{})
	}
	status := corev1.PodStatus{
		Phase: corev1.PodRunning, HostIP: h.address(0), PodIP: address, PodIPs: []corev1.PodIP{{IP: address}}, StartTime: &now,
		Conditions: []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: now},
			{Type: corev1.ContainersReady, Status: corev1.ConditionTrue, LastTransitionTime: now},
			{Type: corev1.PodInitialized, Status: corev1.ConditionTrue, LastTransitionTime: now},
		},
		ContainerStatuses: []corev1.ContainerStatus{{Name: "app", Ready: true, Image: "app", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}}},
	}
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return
	}
	_, _ = h.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
}

// startHollow registers nodes, and calls run for each node until the test ends. It returns the
// duration of the registration.
func startHollow(t *testing.T, client kubernetes.Interface, count int, run func(hollow, context.Context)) time.Duration {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	t.Cleanup(func() { cancel(); running.Wait() })
	start := time.Now()
	for i := range count {
		node := hollow{client, fmt.Sprintf("hollow-%d", i), i}
		if err := node.register(ctx); err != nil {
			t.Fatal(err)
		}
		running.Go(func() { run(node, ctx) })
	}
	return time.Since(start)
}
