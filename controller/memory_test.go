package controller

import (
	"fmt"
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

// BenchmarkMemoryOfCachedObjects reports the heap size of a cached object, in bytes: as received
// from the API server, and after the Deps transforms. The results are in docs/benchmark.md.
func BenchmarkMemoryOfCachedObjects(b *testing.B) {
	pod := managedPod(b)
	metadata := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: pod.ObjectMeta}
	keep := func(object any) (any, error) { return object, nil }
	for _, tt := range []struct {
		name      string
		transform func(any) (any, error)
		decode    func() (any, error)
	}{
		{"pod/sent", keep, decodePod(b, pod)},
		{"pod/cached", removeManagedFields, decodePod(b, pod)},
		{"metadata/sent", keep, decodeMetadata(b, metadata)},
		{"metadata/cached", trimMetadata, decodeMetadata(b, metadata)},
	} {
		b.Run(tt.name, func(b *testing.B) {
			b.ReportMetric(bytesOf(b, b.N, func() (any, error) {
				object, err := tt.decode()
				if err != nil {
					return nil, err
				}
				return tt.transform(object)
			}), "B/object")
			b.ReportMetric(0, "ns/op") // the time is not significant
		})
	}
}

func TestTransformsReduceMemory(t *testing.T) {
	pod := managedPod(t)
	sent := bytesOf(t, 2000, decodePod(t, pod))
	cached := bytesOf(t, 2000, func() (any, error) {
		object, err := decodePod(t, pod)()
		if err != nil {
			return nil, err
		}
		return removeManagedFields(object)
	})
	if cached > 0.9*sent {
		t.Errorf("a cached pod uses %.0f bytes, and %.0f bytes without a transform", cached, sent)
	}
}

// bytesOf returns the average heap size of n objects, in bytes.
func bytesOf(t testing.TB, n int, create func() (any, error)) float64 {
	t.Helper()
	objects := make([]any, n)
	before := heap()
	for i := range objects {
		object, err := create()
		if err != nil {
			t.Fatal(err)
		}
		objects[i] = object
	}
	after := heap()
	runtime.KeepAlive(objects)
	return (float64(after) - float64(before)) / float64(n)
}

func heap() uint64 {
	runtime.GC()
	runtime.GC() // frees objects that the first collection finalized
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// decodePod returns a function that decodes the protobuf encoding of a pod, as the Deps clients do.
func decodePod(t testing.TB, pod *corev1.Pod) func() (any, error) {
	t.Helper()
	content, err := pod.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return func() (any, error) {
		pod := &corev1.Pod{}
		return pod, pod.Unmarshal(content)
	}
}

func decodeMetadata(t testing.TB, metadata *metav1.PartialObjectMetadata) func() (any, error) {
	t.Helper()
	content, err := metadata.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return func() (any, error) {
		metadata := &metav1.PartialObjectMetadata{}
		return metadata, metadata.Unmarshal(content)
	}
}

// managedPod returns a running pod that a user has applied. It has the managed fields that the API
// server records for the user's and the kubelet's changes.
func managedPod(t testing.TB) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web-6d4b75cb6d-hxzrq", Namespace: "shop", UID: "0a3c5e79-5f2d-4a0e-9a35-0d3c7ab8b4aa",
			Labels: map[string]string{"app": "web", "pod-template-hash": "6d4b75cb6d"}, Annotations: map[string]string{"openshift.io/scc": "restricted"}},
		Spec: corev1.PodSpec{
			NodeName: "node1", ServiceAccountName: "default", RestartPolicy: corev1.RestartPolicyAlways, DNSPolicy: corev1.DNSClusterFirst,
			Containers: []corev1.Container{{
				Name: "web", Image: "registry.example.com/shop/web:1", ImagePullPolicy: corev1.PullIfNotPresent,
				Ports:        []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}},
				Env:          []corev1.EnvVar{{Name: "DATABASE", Value: "db.shop.svc"}, {Name: "LEVEL", Value: "info"}},
				Resources:    corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("500m"), "memory": resource.MustParse("256Mi")}},
				VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}, {Name: "kube-api-access", MountPath: "/var/run/secrets/kubernetes.io/serviceaccount", ReadOnly: true}},
			}},
			Volumes: []corev1.Volume{
				{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}},
				{Name: "kube-api-access", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{}}},
			},
		},
	}
	applied, err := pod.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	// This value is about as long as the pod's JSON.
	pod.Annotations[corev1.LastAppliedConfigAnnotation] = fmt.Sprintf("%x", applied)
	pods := fake.NewClientset().CoreV1().Pods("shop")
	created, err := pods.Create(t.Context(), pod, metav1.CreateOptions{FieldManager: "kubectl-client-side-apply"})
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []corev1.PodConditionType{corev1.PodReady, corev1.ContainersReady, corev1.PodInitialized, corev1.PodScheduled} {
		created.Status.Conditions = append(created.Status.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()})
	}
	created.Status.Phase, created.Status.PodIP, created.Status.HostIP = corev1.PodRunning, "10.128.0.7", "192.0.2.1"
	created.Status.PodIPs, created.Status.HostIPs = []corev1.PodIP{{IP: "10.128.0.7"}}, []corev1.HostIP{{IP: "192.0.2.1"}}
	created.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "web", Ready: true, Image: "registry.example.com/shop/web:1", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}},
	}}
	updated, err := pods.UpdateStatus(t.Context(), created, metav1.UpdateOptions{FieldManager: "kubelet"})
	if err != nil {
		t.Fatal(err)
	}
	if len(updated.ManagedFields) != 2 {
		t.Fatalf("got managed fields %v, want those of two managers", updated.ManagedFields)
	}
	return updated
}
