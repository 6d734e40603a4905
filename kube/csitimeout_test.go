package kube

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	kubefake "k8s.io/client-go/kubernetes/fake"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/volume"
	"k8s.io/kubernetes/pkg/volume/csi"
	volumetesting "k8s.io/kubernetes/pkg/volume/testing"
)

// csiWaits is how long the CSI volume plugin waits for a VolumeAttachment to be attached or
// deleted.
const csiWaits = 2 * time.Minute

// csiPlugin returns the attach-detach controller's CSI volume plugin. It reads VolumeAttachments
// from the index.
func csiPlugin(t *testing.T, client kubernetes.Interface, indexer cache.Indexer) volume.AttachableVolumePlugin {
	t.Helper()
	drivers := storagelisters.NewCSIDriverLister(cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil))
	host := volumetesting.NewFakeAttachDetachVolumeHostWithCSINodeName(t, t.TempDir(), client, csi.ProbeVolumePlugins(), "node", drivers, storagelisters.NewVolumeAttachmentLister(indexer))
	plugin, err := host.GetPluginMgr().FindAttachablePluginByName(csi.CSIPluginName)
	if err != nil {
		t.Fatal(err)
	}
	return plugin
}

// The clock of the synctest bubble advances only while all of its goroutines are blocked, so the
// test does not wait in real time.
func TestCSIAttachAndDetachTimeOut(t *testing.T) {
	client, indexer := kubefake.NewClientset(), cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil)
	plugin := csiPlugin(t, client, indexer)
	attacher, err := plugin.NewAttacher()
	if err != nil {
		t.Fatal(err)
	}
	detacher, err := plugin.NewDetacher()
	if err != nil {
		t.Fatal(err)
	}
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "data"}, Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{
		CSI: &corev1.CSIPersistentVolumeSource{Driver: "csi.example.com", VolumeHandle: "disk-1"},
	}}}
	timesOut(t, "csi.example.com CSI driver to attach volume disk-1", func() error {
		_, err := attacher.Attach(volume.NewSpecFromPersistentVolume(pv, false), "node")
		return err
	})
	attachments, err := client.StorageV1().VolumeAttachments().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(attachments.Items) != 1 || *attachments.Items[0].Spec.Source.PersistentVolumeName != "data" {
		t.Fatalf("VolumeAttachments %+v, %v", attachments, err)
	}
	attachment := attachments.Items[0]
	attachment.Status.Attached = true
	if err := indexer.Add(&attachment); err != nil { // a finalizer keeps the attachment
		t.Fatal(err)
	}
	timesOut(t, "CSI driver to detach volume disk-1", func() error { return detacher.Detach("csi.example.com^disk-1", "node") })
}

func timesOut(t *testing.T, subject string, do func() error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		if err := do(); err == nil || !strings.Contains(err.Error(), "timed out waiting for external-attacher of ") || !strings.Contains(err.Error(), subject) {
			t.Errorf("error %v", err)
		}
		if elapsed := time.Since(start); elapsed != csiWaits {
			t.Errorf("the plugin waited %s of the bubble's time", elapsed)
		}
	})
}
