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

// publish asks the driver about one place and writes what has changed.
func (t *tracker) publish(ctx context.Context, class *storagev1.StorageClass, segment topology.Segment, name string) error {
	answer, err := t.ask(ctx, class, segment)
	if err != nil {
		return err
	}
	wanted := t.object(class, segment, name, answer)
	objects := t.Client.StorageV1().CSIStorageCapacities(t.Namespace)
	have, err := t.objects.Get(name)
	switch {
	case apierrors.IsNotFound(err):
		if _, err := objects.Create(ctx, wanted, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create CSIStorageCapacity %q: %w", name, err)
		}
		return nil
	case err != nil:
		return fmt.Errorf("read CSIStorageCapacity %q: %w", name, err)
	case equality.Semantic.DeepEqual(have.Capacity, wanted.Capacity) && equality.Semantic.DeepEqual(have.MaximumVolumeSize, wanted.MaximumVolumeSize) &&
		equality.Semantic.DeepEqual(have.OwnerReferences, wanted.OwnerReferences):
		return nil
	}
	wanted.ResourceVersion = have.ResourceVersion
	if _, err := objects.Update(ctx, wanted, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("update CSIStorageCapacity %q: %w", name, err)
	}
	return nil
}

func (t *tracker) ask(ctx context.Context, class *storagev1.StorageClass, segment topology.Segment) (*csi.GetCapacityResponse, error) {
	passed, err := parameters.Passed(class.Parameters)
	if err != nil {
		return nil, fmt.Errorf("use StorageClass %q: %w", class.Name, err)
	}
	fsType, err := parameters.FSType(class.Parameters, "")
	if err != nil {
		return nil, fmt.Errorf("use StorageClass %q: %w", class.Name, err)
	}
	use := access.Use{FSType: fsType, MountOptions: class.MountOptions}
	return t.Driver.Controller().GetCapacity(ctx, &csi.GetCapacityRequest{
		Parameters: passed, AccessibleTopology: &csi.Topology{Segments: segment},
		VolumeCapabilities: []*csi.VolumeCapability{use.Capability(csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER)},
	})
}

func (t *tracker) object(class *storagev1.StorageClass, segment topology.Segment, name string, answer *csi.GetCapacityResponse) *storagev1.CSIStorageCapacity {
	object := &storagev1.CSIStorageCapacity{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: t.Namespace, OwnerReferences: t.owner(),
			Labels: map[string]string{driverLabel: t.name, managerLabel: t.manager()},
		},
		NodeTopology: &metav1.LabelSelector{MatchLabels: segment}, StorageClassName: class.Name,
		Capacity: resource.NewQuantity(answer.GetAvailableCapacity(), resource.BinarySI),
	}
	if largest := answer.GetMaximumVolumeSize(); largest != nil {
		object.MaximumVolumeSize = resource.NewQuantity(largest.GetValue(), resource.BinarySI)
	}
	return object
}

// owner is what the objects go with: the Node that the driver serves, or the driver itself.
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
		return nil // not registered yet; it is added once it is
	}
	return []metav1.OwnerReference{*ownerOf(csiDriver, storagev1.SchemeGroupVersion.String(), "CSIDriver")}
}

func ownerOf(object metav1.Object, version, kind string) *metav1.OwnerReference {
	return &metav1.OwnerReference{APIVersion: version, Kind: kind, Name: object.GetName(), UID: object.GetUID()}
}
