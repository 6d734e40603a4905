package node

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/slipway-platform/slipway/internal/eventually"
)

// pods is a fake kubelet pod resources API that returns the given pods.
type pods struct {
	podresources.UnimplementedPodResourcesListerServer
	mu    sync.Mutex
	names []string
}

func (p *pods) List(context.Context, *podresources.ListPodResourcesRequest) (*podresources.ListPodResourcesResponse, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	response := &podresources.ListPodResourcesResponse{}
	for _, name := range p.names {
		response.PodResources = append(response.PodResources, &podresources.PodResources{Namespace: "shop", Name: name})
	}
	return response, nil
}

func (p *pods) learn(names ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.names = names
}

// serve listens on the kubelet's pod resources socket below the given root directory.
func (p *pods) serve(t *testing.T, rootDirectory string) {
	t.Helper()
	dir := filepath.Join(rootDirectory, "pod-resources")
	if err := os.MkdirAll(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("unix", filepath.Join(dir, "kubelet.sock"))
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	podresources.RegisterPodResourcesListerServer(server, p)
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func pod(name string, change func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: corev1.PodSpec{NodeName: "host1"}}
	if change != nil {
		change(pod)
	}
	return pod
}

func TestPodSyncWaitsForPodsOfNode(t *testing.T) {
	now := metav1.Now()
	client := fake.NewClientset(
		pod("front", nil), pod("back", nil), pod("leaving", nil),
		pod("done", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }),
		pod("static-host1", func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "1"} }),
		pod("going", func(p *corev1.Pod) { p.DeletionTimestamp, p.Finalizers = &now, []string{"example.com/kept"} }),
	)
	root := t.TempDir()
	kubelet, hangUp, err := dialKubelet(root)
	if err != nil {
		t.Fatal(err)
	}
	defer hangUp()
	r := &podSync{client: client, nodeName: "host1", kubelet: kubelet}
	if r.complete(t.Context()) {
		t.Fatal("complete before the kubelet responds")
	}
	reported := &pods{}
	reported.serve(t, root)
	eventually.True(t, "the kubelet responds", func() bool {
		_, err := kubelet.List(t.Context(), &podresources.ListPodResourcesRequest{})
		return err == nil
	})
	if r.complete(t.Context()) {
		t.Fatal("complete before the kubelet has received a pod")
	}
	reported.learn("front")
	if r.complete(t.Context()) {
		t.Fatal("complete before the kubelet has received all pods")
	}
	if _, err := client.CoreV1().Pods("shop").Create(t.Context(), pod("late", nil), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := client.CoreV1().Pods("shop").Delete(t.Context(), "leaving", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	reported.learn("back") // the kubelet need not report "front" again
	if !r.complete(t.Context()) {
		t.Errorf("the kubelet has not received %v", r.missing)
	}
}

func TestPodSyncIsCompleteWithoutPods(t *testing.T) {
	kubelet, hangUp, err := dialKubelet(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer hangUp()
	r := &podSync{client: fake.NewClientset(), nodeName: "host1", kubelet: kubelet}
	if !r.complete(t.Context()) {
		t.Error("not complete although the node has no pods")
	}
}
