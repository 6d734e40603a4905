package node

import (
	"testing"
	"time"

	"k8s.io/klog/v2"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	"k8s.io/kubernetes/pkg/kubelet/images/pullmanager"
)

func TestPullRecordsAreThoseOfTheKubelet(t *testing.T) {
	const id, name = "sha256:1111111111111111111111111111111111111111111111111111111111111111", "registry.example.com/shop/app:1"
	root := t.TempDir()
	files, err := pullmanager.NewFSPullRecordsAccessor(klog.Background(), root)
	if err != nil {
		t.Fatal(err)
	}
	policy, err := pullmanager.NewImagePullCredentialVerificationPolicy(kubeletconfig.NeverVerifyPreloadedImages, nil)
	if err != nil {
		t.Fatal(err)
	}
	const cached, locks = 10, 1
	kubelet, err := pullmanager.NewImagePullManager(t.Context(),
		pullmanager.NewCachedPullRecordsAccessor(klog.Background(), files, cached, cached, locks), policy, nil, locks)
	if err != nil {
		t.Fatal(err)
	}
	records, err := NewPullRecords(root)
	if err != nil {
		t.Fatal(err)
	}
	if records.Has(id) {
		t.Error("an image that was never pulled has a record")
	}
	if err := kubelet.RecordPullIntent(klog.Background(), name); err != nil {
		t.Fatal(err)
	}
	secret := kubeletconfig.ImagePullSecret{UID: "1", Namespace: "shop", Name: "pull", CredentialHash: "hash"}
	kubelet.RecordImagePulled(t.Context(), name, id, &kubeletconfig.ImagePullCredentials{KubernetesSecrets: []kubeletconfig.ImagePullSecret{secret}})
	if !records.Has(id) {
		t.Error("a pulled image has no record")
	}
	// Simulate the kubelet's garbage collection. It passes only the images that it could have
	// removed, so upstream deletes the records of images that are in use.
	kubelet.PruneUnknownRecords(t.Context(), nil, time.Now().Add(time.Hour))
	if records.Has(id) {
		t.Error("the record was not deleted")
	}
}
