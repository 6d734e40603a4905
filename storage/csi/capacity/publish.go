package capacity

import (
	"context"
	"fmt"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/storage/csi/access"
	"github.com/slipway-platform/slipway/storage/csi/parameters"
	"github.com/slipway-platform/slipway/storage/csi/topology"
)

// publish queries the capacity of one segment, and writes the object if the capacity has changed.
func (t *tracker) publish(ctx context.Context, class *storagev1.StorageClass, segment topology.Segment, name string) error {
	resp, err := t.query(ctx, class, segment)
	if err != nil {
		return err
	}
	desired := t.object(class, segment, name, resp)
	objects := t.Client.StorageV1().CSIStorageCapacities(t.Namespace)
	existing, err := t.objects.Get(name)
	switch {
	case apierrors.IsNotFound(err):
		if _, err := objects.Create(ctx, desired, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create CSIStorageCapacity %q: %w", name, err)
		}
		return nil
	case err != nil:
		return fmt.Errorf("read CSIStorageCapacity %q: %w", name, err)
	case equality.Semantic.DeepEqual(existing.Capacity, desired.Capacity) && equality.Semantic.DeepEqual(existing.MaximumVolumeSize, desired.MaximumVolumeSize) &&
		equality.Semantic.DeepEqual(existing.OwnerReferences, desired.OwnerReferences):
		return nil
	}
	desired.ResourceVersion = existing.ResourceVersion
	if _, err := objects.Update(ctx, desired, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("update CSIStorageCapacity %q: %w", name, err)
	}
	return nil
}

func (t *tracker) query(ctx context.Context, class *storagev1.StorageClass, segment topology.Segment) (*csi.GetCapacityResponse, error) {
	driverParams, err := parameters.ForDriver(class.Parameters)
	if err != nil {
		return nil, fmt.Errorf("use StorageClass %q: %w", class.Name, err)
	}
	fsType, err := parameters.FSType(class.Parameters, "")
	if err != nil {
		return nil, fmt.Errorf("use StorageClass %q: %w", class.Name, err)
	}
	use := access.Use{FSType: fsType, MountOptions: class.MountOptions}
	return t.Driver.Controller().GetCapacity(ctx, &csi.GetCapacityRequest{
		Parameters: driverParams, AccessibleTopology: &csi.Topology{Segments: segment},
		VolumeCapabilities: []*csi.VolumeCapability{use.Capability(csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER)},
	})
}

func (t *tracker) object(class *storagev1.StorageClass, segment topology.Segment, name string, resp *csi.GetCapacityResponse) *storagev1.CSIStorageCapacity {
	object := &storagev1.CSIStorageCapacity{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: t.Namespace, OwnerReferences: t.owner(),
			Labels: map[string]string{driverLabel: t.name, managerLabel: t.manager()},
		},
		NodeTopology: &metav1.LabelSelector{MatchLabels: segment}, StorageClassName: class.Name,
		Capacity: resource.NewQuantity(resp.GetAvailableCapacity(), resource.BinarySI),
	}
	if maxSize := resp.GetMaximumVolumeSize(); maxSize != nil {
		object.MaximumVolumeSize = resource.NewQuantity(maxSize.GetValue(), resource.BinarySI)
	}
	return object
}

// owner returns the owner reference of the objects: the Node that the driver serves, or the
// CSIDriver.
func (t *tracker) owner() []metav1.OwnerReference {
	if t.Node != "" {
		node, err := t.nodes.Get(t.Node)
		if err != nil {
			return nil
		}
		return []metav1.OwnerReference{*ownerOf(node, corev1.SchemeGroupVersion.String(), "Node")}
	}
	csiDriver, err := t.drivers.Get(t.name)
	if err != nil {
		return nil // the driver is not registered yet; a later update adds the owner
	}
	return []metav1.OwnerReference{*ownerOf(csiDriver, storagev1.SchemeGroupVersion.String(), "CSIDriver")}
}

func ownerOf(object metav1.Object, version, kind string) *metav1.OwnerReference {
	return &metav1.OwnerReference{APIVersion: version, Kind: kind, Name: object.GetName(), UID: object.GetUID()}
}
