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

// roll calls the pods that a node had before kubelet was started. Until kubelet has heard of them from the API server
// it says of each that it does not exist, to `exec` and `logs` for instance, although it serves already.
type roll struct {
	client   kubernetes.Interface
	nodeName string
	kubelet  podresources.PodResourcesListerClient
	// missing are the pods, as namespace/name, that kubelet has not named yet; nil before the first call.
	missing map[string]bool
}

// dialKubelet reaches the socket on which kubelet says which pods it has; close ends the connection. Nothing is sent before it is asked.
func dialKubelet(rootDirectory string) (client podresources.PodResourcesListerClient, close func() error, err error) {
	socket := filepath.Join(rootDirectory, kubeletconfig.DefaultKubeletPodResourcesDirName, podresourcesserver.Socket+".sock")
	again := backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1, MaxDelay: 100 * time.Millisecond}
	connection, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: again, MinConnectTimeout: time.Second}))
	if err != nil {
		return nil, nil, fmt.Errorf("connect %q: %w", socket, err)
	}
	return podresources.NewPodResourcesListerClient(connection), connection.Close, nil
}

// complete says whether kubelet knows every pod that the node had when it was first asked and still has.
func (r *roll) complete(ctx context.Context) bool {
	living, err := r.living(ctx)
	if err != nil {
		return false
	}
	if r.missing == nil {
		r.missing = maps.Clone(living)
	}
	maps.DeleteFunc(r.missing, func(name string, _ bool) bool { return !living[name] })
	if len(r.missing) == 0 {
		return true
	}
	answer, err := r.kubelet.List(ctx, &podresources.ListPodResourcesRequest{})
	if err != nil {
		return false
	}
	for _, pod := range answer.GetPodResources() {
		delete(r.missing, pod.GetNamespace()+"/"+pod.GetName())
	}
	return len(r.missing) == 0
}

// living are the pods that the API server has for the node and kubelet should run. Those that kubelet itself makes from files it
// knows without the API server.
func (r *roll) living(ctx context.Context) (map[string]bool, error) {
	pods, err := r.client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.nodeName", r.nodeName).String(),
	})
	if err != nil {
		return nil, fmt.Errorf("list pods of %q: %w", r.nodeName, err)
	}
	living := map[string]bool{}
	for _, pod := range pods.Items {
		ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		_, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]
		if !ended && !mirror && pod.DeletionTimestamp == nil {
			living[pod.Namespace+"/"+pod.Name] = true
		}
	}
	return living, nil
}
