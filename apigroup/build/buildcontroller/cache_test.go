package buildcontroller

import (
	"testing"

	buildv1 "github.com/openshift/api/build/v1"
	buildlisters "github.com/openshift/client-go/build/listers/build/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"github.com/slipway-platform/slipway/internal/buildpod"
)

// cacheOf returns the cache volume in a build's pod, or nil.
func cacheOf(t *testing.T, m *podFactory, build *buildv1.Build) *corev1.CSIVolumeSource {
	t.Helper()
	pod, _, err := m.pod(t.Context(), build)
	if err != nil {
		t.Fatal(err)
	}
	for i, volume := range pod.Spec.Volumes {
		if volume.CSI == nil {
			continue
		}
		if mount := pod.Spec.Containers[0].VolumeMounts[i]; mount.Name != volume.Name || mount.MountPath != buildpod.CacheDir {
			t.Errorf("mount is %+v", mount)
		}
		return volume.CSI
	}
	return nil
}

func TestBuildsOfOneConfigurationShareCacheVolume(t *testing.T) {
	m := newPodFactory(t)
	m.CacheDriver, m.CacheLabel = "local.example.com", "example.com/local"
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil)
	m.configs = buildlisters.NewBuildConfigLister(indexer)
	if err := indexer.Add(&buildv1.BuildConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "app", UID: "its-uid"}}); err != nil {
		t.Fatal(err)
	}
	// While the node restarts, its CSINode does not list the driver.
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node1", Labels: map[string]string{m.CacheLabel: "true"}}}
	m.nodes = fake.NewClientset(node, &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: "node1"}}).CoreV1()

	configured := build()
	configured.Annotations = map[string]string{buildv1.BuildConfigAnnotation: "app"}
	configured.Spec.Resources.Limits = corev1.ResourceList{corev1.ResourceEphemeralStorage: resource.MustParse("1Ki")}
	if got := cacheOf(t, m, configured); got == nil || got.Driver != m.CacheDriver || got.VolumeAttributes["cache"] != "its-uid" || got.VolumeAttributes["size"] != "1024" {
		t.Errorf("volume is %+v", got)
	}
	for name, change := range map[string]func(*buildv1.Build){
		"without a configuration":    func(b *buildv1.Build) { b.Annotations = nil },
		"of a deleted configuration": func(b *buildv1.Build) { b.Annotations[buildv1.BuildConfigAnnotation] = "other" },
		"by a custom builder": func(b *buildv1.Build) {
			b.Spec.Strategy = buildv1.BuildStrategy{CustomStrategy: &buildv1.CustomBuildStrategy{From: corev1.ObjectReference{Kind: "DockerImage", Name: "custom:1"}}}
		},
	} {
		other := configured.DeepCopy()
		change(other)
		if got := cacheOf(t, m, other); got != nil {
			t.Errorf("build %s: volume is %+v", name, got)
		}
	}
	m.nodes = fake.NewClientset(node, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node2"}}).CoreV1()
	if got := cacheOf(t, m, configured); got != nil {
		t.Errorf("a node without the driver: volume is %+v", got)
	}
}
