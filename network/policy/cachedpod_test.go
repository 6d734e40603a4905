package policy

import (
	"net/netip"
	"slices"
	"testing"
	"unsafe"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestCachedPodsAreSmall checks the size of a cached pod, because each node caches all pods of the
// cluster.
func TestCachedPodsAreSmall(t *testing.T) {
	if got := unsafe.Sizeof(cachedPod{}); got > 352 { // one of the size classes of Go's allocator
		t.Errorf("a pod in the cache takes %d bytes", got)
	}
}

func TestOnlySomeChangesOfPodsAreRelevant(t *testing.T) {
	create := func() *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", ResourceVersion: "1", Labels: map[string]string{"app": "web"}},
			Spec:       corev1.PodSpec{NodeName: "one", Containers: []corev1.Container{{Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 80}}}}},
			Status:     corev1.PodStatus{PodIP: "10.128.0.2", PodIPs: []corev1.PodIP{{IP: "10.128.0.2"}, {IP: "fd01::2"}}},
		}
	}
	if got := cachePod(create()).addresses(); !slices.Equal(got, []netip.Addr{netip.MustParseAddr("10.128.0.2"), netip.MustParseAddr("fd01::2")}) {
		t.Errorf("addresses are %v", got)
	}
	for _, tt := range []struct {
		name   string
		change func(p *corev1.Pod)
		want   bool
	}{
		{"version and conditions", func(p *corev1.Pod) {
			p.ResourceVersion, p.Status.Conditions = "2", []corev1.PodCondition{{Type: corev1.PodReady}}
		}, false},
		{"annotation of others", func(p *corev1.Pod) { p.Annotations = map[string]string{"note": "text"} }, false},
		{"label", func(p *corev1.Pod) { p.Labels["app"] = "till" }, true},
		{"address", func(p *corev1.Pod) { p.Status.PodIP, p.Status.PodIPs = "", nil }, true},
		{"second address", func(p *corev1.Pod) { p.Status.PodIPs = p.Status.PodIPs[:1] }, true},
		{"named port", func(p *corev1.Pod) { p.Spec.Containers[0].Ports[0].ContainerPort = 81 }, true},
		{"end", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, true},
		{"limit", func(p *corev1.Pod) { p.Annotations = map[string]string{"kubernetes.io/egress-bandwidth": "1M"} }, true},
	} {
		changed := create()
		tt.change(changed)
		if got := relevant(cachePod(create()), cachePod(changed)); got != tt.want {
			t.Errorf("a change of the %s is relevant: %t, want %t", tt.name, got, tt.want)
		}
	}
}
