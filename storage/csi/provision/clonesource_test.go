package provision

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/slipway-platform/slipway/storage/csi/driver"
	"github.com/slipway-platform/slipway/storage/csi/session"
)

func TestDriverDoesNotReleaseSourceOfOtherDriver(t *testing.T) {
	volumes := cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil)
	for _, name := range []string{"own.example.com", "other.example.com"} {
		source := corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: name}}
		if err := volumes.Add(&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: source}}); err != nil {
			t.Fatal(err)
		}
	}
	p := &provisioner{
		Session: &session.Session{Description: &driver.Description{Name: "own.example.com"}}, volumes: corelisters.NewPersistentVolumeLister(volumes),
	}
	for volume, want := range map[string]bool{"own.example.com": true, "other.example.com": false, "gone": true} {
		claim := &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{VolumeName: volume}}
		if own, err := p.ownsSource(claim); own != want || err != nil {
			t.Errorf("a claim with volume %q: %v, %v", volume, own, err)
		}
	}
}
