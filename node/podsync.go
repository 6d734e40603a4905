package node

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
	podresourcesserver "k8s.io/kubernetes/pkg/kubelet/apis/podresources"
	"k8s.io/kubernetes/pkg/kubelet/kubeletconfig"
)

// podSync waits until the kubelet has received the node's existing pods from the API server. Before
// that, the kubelet already serves requests, but returns "not found" for these pods, for example to
// `exec` and `logs`.
type podSync struct {
	client   kubernetes.Interface
	nodeName string
	kubelet  podresources.PodResourcesListerClient
	// missing contains the pods that the kubelet has not received yet, as namespace/name. It is nil
	// before the first call.
	missing map[string]bool
}

// dialKubelet returns a client for the kubelet's pod resources socket. close closes the connection,
// which is established for the first request.
func dialKubelet(rootDirectory string) (client podresources.PodResourcesListerClient, close func() error, err error) {
	socket := filepath.Join(rootDirectory, kubeletconfig.DefaultKubeletPodResourcesDirName, podresourcesserver.Socket+".sock")
	retry := backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1, MaxDelay: 100 * time.Millisecond}
	connection, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: retry, MinConnectTimeout: time.Second}))
	if err != nil {
		return nil, nil, fmt.Errorf("connect to %q: %w", socket, err)
	}
	return podresources.NewPodResourcesListerClient(connection), connection.Close, nil
}

// complete reports whether the kubelet has received every pod that the node had at the first call,
// except for pods that no longer exist.
func (r *podSync) complete(ctx context.Context) bool {
	running, err := r.running(ctx)
	if err != nil {
		return false
	}
	if r.missing == nil {
		r.missing = maps.Clone(running)
	}
	maps.DeleteFunc(r.missing, func(name string, _ bool) bool { return !running[name] })
	if len(r.missing) == 0 {
		return true
	}
	resp, err := r.kubelet.List(ctx, &podresources.ListPodResourcesRequest{})
	if err != nil {
		return false
	}
	for _, pod := range resp.GetPodResources() {
		delete(r.missing, pod.GetNamespace()+"/"+pod.GetName())
	}
	return len(r.missing) == 0
}

// running returns the node's pods that the kubelet should run, according to the API server. It
// excludes mirror pods, because the kubelet runs their static pods without the API server.
func (r *podSync) running(ctx context.Context) (map[string]bool, error) {
	pods, err := r.client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.nodeName", r.nodeName).String(),
	})
	if err != nil {
		return nil, fmt.Errorf("list pods of %q: %w", r.nodeName, err)
	}
	running := map[string]bool{}
	for _, pod := range pods.Items {
		completed := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		_, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]
		if !completed && !mirror && pod.DeletionTimestamp == nil {
			running[pod.Namespace+"/"+pod.Name] = true
		}
	}
	return running, nil
}
