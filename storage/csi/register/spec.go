package register

import (
	"github.com/container-storage-interface/spec/lib/go/csi"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/slipway-platform/slipway/storage/csi/driver"
)

// Spec is what the CSIDriver object of a driver says: whether it attaches and whether its capacity is tracked follow from its
// capabilities; the configuration wins, and alone knows the rest (pod information, lifecycle modes, file ownership, tokens).
func Spec(d *driver.Description, configured storagev1.CSIDriverSpec) storagev1.CSIDriverSpec {
	attaches := d.Can(csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME)
	capacity := d.Can(csi.ControllerServiceCapability_RPC_GET_CAPACITY)
	spec := storagev1.CSIDriverSpec{AttachRequired: &attaches, StorageCapacity: &capacity}
	overlay(&spec, configured)
	return spec
}
