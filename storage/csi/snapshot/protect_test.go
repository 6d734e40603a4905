package snapshot

import (
	"slices"
	"testing"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/slipway-platform/slipway/storage/csi/session"
)

func TestOnlyDriverOfVolumeReleasesClaim(t *testing.T) {
	for driver, want := range map[string]bool{"own.example.com": true, "other.example.com": false} {
		claim := &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", Finalizers: []string{claimFinalizer}}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pv"},
		}
		volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}}
		volume.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: driver}
		claims, volumes := cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil), cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil)
		if err := claims.Add(claim); err != nil {
			t.Fatal(err)
		}
		if err := volumes.Add(volume); err != nil {
			t.Fatal(err)
		}
		client := fake.NewClientset(claim)
		r := &snapshotter{
			Session: &session.Session{Client: client}, driver: "own.example.com", byClaim: cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{byClaim: func(any) ([]string, error) { return nil, nil }}),
			claims: corelisters.NewPersistentVolumeClaimLister(claims), volumes: corelisters.NewPersistentVolumeLister(volumes),
		}
		snapshot := &snapshotv1.VolumeSnapshot{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "s"}}
		snapshot.Spec.Source.PersistentVolumeClaimName = ptr.To("data")
		if err := r.unprotect(t.Context(), snapshot); err != nil {
			t.Fatal(err)
		}
		after, err := client.CoreV1().PersistentVolumeClaims("shop").Get(t.Context(), "data", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(after.Finalizers, claimFinalizer) == want {
			t.Errorf("volume of %s: finalizers %q", driver, after.Finalizers)
		}
	}
}
