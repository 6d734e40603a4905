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

// plan is what is asked of the driver for a claim, and what the PersistentVolume says beside the answer.
type plan struct {
	claim          *corev1.PersistentVolumeClaim
	class          *storagev1.StorageClass
	request        *csi.CreateVolumeRequest
	use            access.Use
	deletionSecret *corev1.SecretReference
	attributes     string                        // name of the VolumeAttributesClass, or empty
	cloned         *corev1.PersistentVolumeClaim // whose volume is the source, or nil
	inTree         bool                          // the class is of the in-tree plug-in that the driver has taken over, and so is the PersistentVolume
}

func className(claim *corev1.PersistentVolumeClaim) string {
	return volume.GetPersistentVolumeClaimClass(claim)
}

// plan makes the request. It is the same in each try for as long as claim, class and selected node are.
func (p *provisioner) plan(ctx context.Context, claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) (*plan, error) {
	own, err := p.OwnClass(class)
	if err != nil {
		return nil, err
	}
	if own == nil {
		return nil, fmt.Errorf("use StorageClass %q: it is of another provisioner, %q", class.Name, class.Provisioner)
	}
	result := &plan{claim: claim, class: own, inTree: class.Provisioner != p.name, request: &csi.CreateVolumeRequest{Name: volumeName(claim)}}
	steps := []func(context.Context, *plan) error{p.planSize, p.planUse, p.planParameters, p.planAttributes, p.planTopology, p.planSource}
	for _, step := range steps {
		if err := step(ctx, result); err != nil {
			return nil, err
		}
	}
	return result, nil
}

func (p *provisioner) planSize(_ context.Context, plan *plan) error {
	wanted := plan.claim.Spec.Resources.Requests[corev1.ResourceStorage]
	limit := plan.claim.Spec.Resources.Limits[corev1.ResourceStorage]
	plan.request.CapacityRange = &csi.CapacityRange{RequiredBytes: wanted.Value(), LimitBytes: limit.Value()}
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
	plan.request.VolumeCapabilities, err = use.Each(plan.claim.Spec.AccessModes)
	return err
}

func (p *provisioner) planParameters(ctx context.Context, plan *plan) (err error) {
	request := plan.request
	if request.Parameters, err = parameters.Passed(plan.class.Parameters); err != nil {
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

// secret is the secret that the class chooses for an operation.
func (plan *plan) secret(operation parameters.Operation) (*corev1.SecretReference, error) {
	reference, err := parameters.Secret(plan.class.Parameters, operation, parameters.ClaimValues(plan.request.Name, plan.claim))
	if err != nil {
		return nil, fmt.Errorf("use StorageClass %q: %w", plan.class.Name, err)
	}
	return reference, nil
}

// planAttributes adds the parameters of the claim's VolumeAttributesClass.
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

// check finds answers that are not what was asked for.
func (plan *plan) check(volume *csi.Volume) error {
	size, limits := volume.GetCapacityBytes(), plan.request.GetCapacityRange()
	switch {
	case volume.GetVolumeId() == "":
		return errors.New("use the answer to CreateVolume: the driver gave the volume no ID")
	case size != 0 && size < limits.GetRequiredBytes():
		return fmt.Errorf("use the answer to CreateVolume: the volume has %d bytes, less than the %d that were asked for", size, limits.GetRequiredBytes())
	case size != 0 && limits.GetLimitBytes() != 0 && size > limits.GetLimitBytes():
		return fmt.Errorf("use the answer to CreateVolume: the volume has %d bytes, more than the limit of %d", size, limits.GetLimitBytes())
	case plan.request.GetVolumeContentSource() != nil && volume.GetContentSource() == nil:
		return errors.New("use the answer to CreateVolume: the driver made an empty volume and not a copy of the data source")
	}
	return nil
}
