package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/slipway-platform/slipway/test/bench/host"
)

// pauseImage is the image for pod sandboxes and for measured pods, on both sides.
const pauseImage = "localhost/slipway-pause:current"

// cluster is a running cluster with the administrator's client.
type cluster struct {
	client *kubernetes.Clientset
}

// connectCluster creates the client for a cluster in the host's namespace, with the kubeconfig at
// path.
func connectCluster(h *host.Host, path string) (*cluster, error) {
	config, err := hostConfig(h, path)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	return &cluster{client}, nil
}

// poll calls probe until probe returns true or an error, or until ctx is done.
func poll(ctx context.Context, delay time.Duration, probe wait.ConditionWithContextFunc) error {
	return wait.PollUntilContextCancel(ctx, delay, true, probe)
}

// waitAPI waits until the API server is ready.
func (c *cluster) waitAPI(ctx context.Context) error {
	err := poll(ctx, 20*time.Millisecond, func(ctx context.Context) (bool, error) {
		var code int
		c.client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).StatusCode(&code)
		return code == http.StatusOK, nil
	})
	if err != nil {
		return fmt.Errorf("wait for API server: %w", err)
	}
	return nil
}

// waitNode waits until the only node is ready and its kubelet has renewed its lease after begin,
// the start time of the processes. Without the lease check, waitNode would accept a node that was
// ready when the cluster stopped. It cannot use the condition's time instead, because the kubelet
// does not write an unchanged status.
func (c *cluster) waitNode(ctx context.Context, begin time.Time) error {
	err := poll(ctx, 20*time.Millisecond, func(ctx context.Context) (bool, error) {
		nodes, err := c.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil || len(nodes.Items) == 0 || !isReady(nodes.Items[0]) {
			return false, nil // The node might not be registered yet.
		}
		lease, err := c.client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(ctx, nodes.Items[0].Name, metav1.GetOptions{})
		return err == nil && lease.Spec.RenewTime != nil && lease.Spec.RenewTime.After(begin), nil
	})
	if err != nil {
		return fmt.Errorf("wait for node: %w", err)
	}
	return nil
}

// isReady reports whether the node's Ready condition is true.
func isReady(node corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// fill creates the objects that an idle cluster contains: one pod and a service for it.
func (c *cluster) fill(ctx context.Context) error {
	err := poll(ctx, 50*time.Millisecond, func(ctx context.Context) (bool, error) {
		_, err := c.client.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{})
		return err == nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait for service account: %w", err)
	}
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "idle"},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": "idle"},
			Ports:    []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8080)}},
		},
	}
	if _, err := c.client.CoreV1().Services("default").Create(ctx, service, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create service: %w", err)
	}
	_, err = c.startPod(ctx, pausePod("idle"))
	return err
}

// empty removes the objects that fill created and waits until the pod is deleted.
func (c *cluster) empty(ctx context.Context) error {
	if err := c.client.CoreV1().Services("default").Delete(ctx, "idle", metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("delete service: %w", err)
	}
	return c.deletePod(ctx, "idle")
}

// pausePod returns a pod that does nothing.
func pausePod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": name}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "pause", Image: pauseImage}}},
	}
}

// startPod creates a pod and returns the time from the request to the watch event with the phase
// Running.
func (c *cluster) startPod(ctx context.Context, pod *corev1.Pod) (time.Duration, error) {
	pods, name := c.client.CoreV1().Pods("default"), pod.Name
	events, err := pods.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		return 0, fmt.Errorf("watch pod %q: %w", name, err)
	}
	defer events.Stop()
	start := time.Now()
	if _, err := pods.Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		return 0, fmt.Errorf("create pod %q: %w", name, err)
	}
	for {
		select {
		case event, open := <-events.ResultChan():
			if !open {
				return 0, fmt.Errorf("watch pod %q: the watch ended", name)
			}
			if pod, ok := event.Object.(*corev1.Pod); ok && pod.Status.Phase == corev1.PodRunning {
				return time.Since(start), nil
			}
		case <-ctx.Done():
			return 0, fmt.Errorf("wait for pod %q: %w", name, context.Cause(ctx))
		}
	}
}

// deletePod deletes a pod and waits until the kubelet has removed it, so that its termination does
// not disturb later measurements.
func (c *cluster) deletePod(ctx context.Context, name string) error {
	pods := c.client.CoreV1().Pods("default")
	if err := pods.Delete(ctx, name, *metav1.NewDeleteOptions(1)); err != nil {
		return fmt.Errorf("delete pod %q: %w", name, err)
	}
	err := poll(ctx, 100*time.Millisecond, func(ctx context.Context) (bool, error) {
		_, err := pods.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, err
	})
	if err != nil {
		return errors.Join(fmt.Errorf("wait for the end of pod %q", name), err)
	}
	return nil
}
