package node

import (
	"fmt"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/kubelet/images/pullmanager"
)

// PullRecords reads the kubelet's records of pulled images.
type PullRecords struct {
	records pullmanager.PullRecordsAccessor
}

// NewPullRecords returns the records in the kubelet's root directory. It creates the directory if
// necessary.
func NewPullRecords(rootDirectory string) (PullRecords, error) {
	records, err := pullmanager.NewFSPullRecordsAccessor(klog.Background(), rootDirectory)
	if err != nil {
		return PullRecords{}, fmt.Errorf("open the kubelet's records of pulled images: %w", err)
	}
	return PullRecords{records}, nil
}

// Has reports whether the kubelet has a record for an image. If there is a record, the kubelet
// checks the credentials of pods that use the image. Has also returns true if the record is
// invalid, because the kubelet then pulls the image again. It returns true for all images if the
// kubelet is configured not to check credentials.
func (p PullRecords) Has(id string) bool {
	if !utilfeature.DefaultFeatureGate.Enabled(features.KubeletEnsureSecretPulledImages) {
		return true
	}
	_, exists, err := p.records.GetImagePulledRecord(id)
	return exists || err != nil
}
