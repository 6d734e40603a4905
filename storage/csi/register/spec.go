package register

import (
	"github.com/container-storage-interface/spec/lib/go/csi"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/slipway-platform/slipway/storage/csi/driver"
)

// Spec returns the spec of a driver's CSIDriver object. attachRequired and storageCapacity default
// to the driver's capabilities. configured overrides these defaults and contains the other fields.
func Spec(d *driver.Description, configured storagev1.CSIDriverSpec) storagev1.CSIDriverSpec {
	attaches := d.Can(csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME)
	capacity := d.Can(csi.ControllerServiceCapability_RPC_GET_CAPACITY)
	spec := storagev1.CSIDriverSpec{AttachRequired: &attaches, StorageCapacity: &capacity}
	overlay(&spec, configured)
	return spec
}
