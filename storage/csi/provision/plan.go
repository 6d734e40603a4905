package provision

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/component-helpers/storage/volume"

	"github.com/slipway-platform/slipway/storage/csi/access"
	"github.com/slipway-platform/slipway/storage/csi/parameters"
)

// plan holds the driver request for a claim, and the PersistentVolume's data that the driver's
// response does not contain.
type plan struct {
	claim          *corev1.PersistentVolumeClaim
	class          *storagev1.StorageClass
	request        *csi.CreateVolumeRequest
	use            access.Use
	deletionSecret *corev1.SecretReference
	attributes     string                        // name of the VolumeAttributesClass, or empty
	cloneSource    *corev1.PersistentVolumeClaim // the source volume's claim, or nil
	// inTree is set if the StorageClass and the PersistentVolume belong to the in-tree plugin that
	// the driver replaces.
	inTree bool
}

func className(claim *corev1.PersistentVolumeClaim) string {
	return volume.GetPersistentVolumeClaimClass(claim)
}

// plan creates the request. The request is the same in each attempt as long as the claim, the class
// and the selected node are unchanged.
func (p *provisioner) plan(ctx context.Context, claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) (*plan, error) {
	translated, err := p.OwnClass(class)
	if err != nil {
		return nil, err
	}
	if translated == nil {
		return nil, fmt.Errorf("use StorageClass %q: it belongs to another provisioner, %q", class.Name, class.Provisioner)
	}
	result := &plan{claim: claim, class: translated, inTree: class.Provisioner != p.name, request: &csi.CreateVolumeRequest{Name: volumeName(claim)}}
	steps := []func(context.Context, *plan) error{p.planSize, p.planUse, p.planParameters, p.planAttributes, p.planTopology, p.planSource}
	for _, step := range steps {
		if err := step(ctx, result); err != nil {
			return nil, err
		}
	}
	return result, nil
}

func (p *provisioner) planSize(_ context.Context, plan *plan) error {
	request := plan.claim.Spec.Resources.Requests[corev1.ResourceStorage]
	limit := plan.claim.Spec.Resources.Limits[corev1.ResourceStorage]
	plan.request.CapacityRange = &csi.CapacityRange{RequiredBytes: request.Value(), LimitBytes: limit.Value()}
	return nil
}

func (p *provisioner) planUse(_ context.Context, plan *plan) (err error) {
	use := access.Use{
		MountOptions: plan.class.MountOptions,
		MultiWriter:  p.Description.Can(csi.ControllerServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER),
		Block:        plan.claim.Spec.VolumeMode != nil && *plan.claim.Spec.VolumeMode == corev1.PersistentVolumeBlock,
	}
	if !use.Block {
		if use.FSType, err = parameters.FSType(plan.class.Parameters, p.FSType); err != nil {
			return err
		}
	}
	plan.use = use
	plan.request.VolumeCapabilities, err = use.PerMode(plan.claim.Spec.AccessModes)
	return err
}

func (p *provisioner) planParameters(ctx context.Context, plan *plan) (err error) {
	request := plan.request
	if request.Parameters, err = parameters.ForDriver(plan.class.Parameters); err != nil {
		return fmt.Errorf("use StorageClass %q: %w", plan.class.Name, err)
	}
	if p.ExtraMetadata {
		maps.Copy(request.Parameters, map[string]string{
			"csi.storage.k8s.io/pvc/name": plan.claim.Name, "csi.storage.k8s.io/pvc/namespace": plan.claim.Namespace, "csi.storage.k8s.io/pv/name": request.Name,
		})
	}
	if plan.deletionSecret, err = plan.secret(parameters.Provisioner); err != nil {
		return err
	}
	request.Secrets, err = parameters.Fetch(ctx, p.Client, plan.deletionSecret)
	return err
}

// secret returns the secret that the class selects for an operation.
func (plan *plan) secret(operation parameters.Operation) (*corev1.SecretReference, error) {
	reference, err := parameters.Secret(plan.class.Parameters, operation, parameters.ClaimValues(plan.request.Name, plan.claim))
	if err != nil {
		return nil, fmt.Errorf("use StorageClass %q: %w", plan.class.Name, err)
	}
	return reference, nil
}

// planAttributes sets the parameters from the claim's VolumeAttributesClass.
func (p *provisioner) planAttributes(_ context.Context, plan *plan) error {
	name := plan.claim.Spec.VolumeAttributesClassName
	if name == nil || *name == "" {
		return nil
	}
	if !p.Description.Can(csi.ControllerServiceCapability_RPC_MODIFY_VOLUME) {
		return fmt.Errorf("use VolumeAttributesClass %q: the driver cannot modify volumes (MODIFY_VOLUME)", *name)
	}
	class, err := p.attributes.Get(*name)
	if err != nil {
		return fmt.Errorf("read VolumeAttributesClass %q: %w", *name, err)
	}
	if class.DriverName != p.name {
		return fmt.Errorf("use VolumeAttributesClass %q: it is for driver %q", *name, class.DriverName)
	}
	plan.request.MutableParameters, plan.attributes = class.Parameters, class.Name
	return nil
}

// check validates the driver's response.
func (plan *plan) check(volume *csi.Volume) error {
	size, limits := volume.GetCapacityBytes(), plan.request.GetCapacityRange()
	switch {
	case volume.GetVolumeId() == "":
		return errors.New("check response to CreateVolume: the volume has no ID")
	case size != 0 && size < limits.GetRequiredBytes():
		return fmt.Errorf("check response to CreateVolume: the volume has %d bytes, less than the requested %d", size, limits.GetRequiredBytes())
	case size != 0 && limits.GetLimitBytes() != 0 && size > limits.GetLimitBytes():
		return fmt.Errorf("check response to CreateVolume: the volume has %d bytes, more than the limit of %d", size, limits.GetLimitBytes())
	case plan.request.GetVolumeContentSource() != nil && volume.GetContentSource() == nil:
		return errors.New("check response to CreateVolume: the driver created an empty volume instead of a copy of the data source")
	}
	return nil
}
