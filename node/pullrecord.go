package node

import (
	"fmt"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/kubelet/images/pullmanager"
)

// PullRecords reads the kubelet's records of the images that it pulled.
type PullRecords struct {
	records pullmanager.PullRecordsAccessor
}

// NewPullRecords returns the records below the kubelet's root directory, which it creates.
func NewPullRecords(rootDirectory string) (PullRecords, error) {
	records, err := pullmanager.NewFSPullRecordsAccessor(klog.Background(), rootDirectory)
	if err != nil {
		return PullRecords{}, fmt.Errorf("open the kubelet's records of pulled images: %w", err)
	}
	return PullRecords{records}, nil
}

// Has reports whether the kubelet has a record of an image, so that it checks the credentials of
// pods that use the image. It is also true if the record is invalid, because the kubelet then pulls
// the image again, and if the kubelet is configured to check nothing.
func (p PullRecords) Has(id string) bool {
	if !utilfeature.DefaultFeatureGate.Enabled(features.KubeletEnsureSecretPulledImages) {
		return true
	}
	_, exists, err := p.records.GetImagePulledRecord(id)
	return exists || err != nil
}
