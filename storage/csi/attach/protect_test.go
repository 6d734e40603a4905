package attach

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/slipway-platform/slipway/controller"
	"github.com/slipway-platform/slipway/storage/csi/driver"
	"github.com/slipway-platform/slipway/storage/csi/session"
)

func volume(uid types.UID) *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv", UID: uid, Finalizers: []string{Finalizer("driver")}}}
	pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "driver", VolumeHandle: "handle"}
	return pv
}

func TestRecordsOfDeletedPersistentVolumesAreRemoved(t *testing.T) {
	pv := volume("1")
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	a := &attacher{
		Session: &session.Session{Client: fake.NewClientset(pv), Description: &driver.Description{Name: "driver"}}, Options: Options{FinalizerDelay: time.Hour},
		name: "driver", finalizer: Finalizer("driver"), volumes: corelisters.NewPersistentVolumeLister(indexer),
	}
	a.protection.setRemoved(pv, true)
	a.protection.detachedFor(pv)
	if !a.protection.isRemoved(pv) {
		t.Fatal("the finalizer is not recorded as removed")
	}
	if a.protection.isRemoved(volume("2")) {
		t.Error("a new PersistentVolume with the same name has the record of the deleted one")
	}
	// The informer passes the deleted object in its last state, which no longer has the finalizer.
	deleted := volume("1")
	deleted.Finalizers = nil
	keys := a.protectedKeys(deleted)
	if len(keys) != 1 {
		t.Fatalf("the deletion of the PersistentVolume enqueues %v", keys)
	}
	if err := a.reconcileProtection(t.Context(), controller.Key{Name: "pv"}); err != nil {
		t.Fatal(err)
	}
	if len(a.protection.volumes) > 0 {
		t.Errorf("records of deleted PersistentVolumes: %v", a.protection.volumes)
	}
	if keys := a.protectedKeys(deleted); len(keys) > 0 {
		t.Errorf("a PersistentVolume without finalizer and record enqueues %v", keys)
	}
}
