package snapshot

import (
	"context"
	"slices"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
)

// isOwn reports whether this controller is responsible for a snapshot. If the snapshot's objects do
// not identify the responsible controller, isOwn returns an error for the snapshot's status.
func (r *snapshotter) isOwn(ctx context.Context, s *snapshotv1.VolumeSnapshot) (bool, error) {
	content, err := r.contents.Get(contentName(s))
	if apierrors.IsNotFound(err) && s.Spec.Source.VolumeSnapshotContentName != nil {
		content, err = r.getContent(ctx, contentName(s))
	}
	switch {
	case err == nil && content != nil:
		return r.ownsContent(content), r.checkNodeLabel(content)
	case err != nil && !apierrors.IsNotFound(err):
		return false, err
	case s.Spec.Source.VolumeSnapshotContentName != nil:
		return false, userErrorf("VolumeSnapshotContent %q does not exist; create it, or create a new VolumeSnapshot with a correct spec.source", contentName(s))
	}
	driver, err := r.driverOf(s)
	if err != nil || driver != r.driver {
		return false, err
	}
	if r.Node == "" {
		return true, nil
	}
	_, volume, err := r.source(s)
	if err != nil {
		return false, err
	}
	if volume.Spec.NodeAffinity == nil {
		return false, userErrorf("PersistentVolume %q has no node affinity, so the node on which CSI driver %q provides it is unknown", volume.Name, r.driver)
	}
	return r.Accessible(volume)
}

// ownsContent reports whether a VolumeSnapshotContent belongs to the driver and, if the driver
// serves a single node, to this node.
func (r *snapshotter) ownsContent(c *snapshotv1.VolumeSnapshotContent) bool {
	return c.Spec.Driver == r.driver && (r.Node == "" || c.Labels[managedBy] == r.Node)
}

// checkNodeLabel returns an error if the driver serves each node separately but the
// VolumeSnapshotContent has no label for its node.
func (r *snapshotter) checkNodeLabel(c *snapshotv1.VolumeSnapshotContent) error {
	if r.Node == "" || c.Spec.Driver != r.driver || c.Labels[managedBy] != "" {
		return nil
	}
	return userErrorf("CSI driver %q serves each node separately; set the label %s of VolumeSnapshotContent %q to the snapshot's node", r.driver, managedBy, c.Name)
}

// driverOf returns the driver of the snapshot's class or, if it has no class, of its volume.
func (r *snapshotter) driverOf(s *snapshotv1.VolumeSnapshot) (string, error) {
	if s.Spec.VolumeSnapshotClassName != nil {
		class, err := r.class(*s.Spec.VolumeSnapshotClassName)
		if err != nil {
			return "", err
		}
		return class.Driver, nil
	}
	_, volume, err := r.source(s)
	if err != nil {
		return "", err
	}
	return volume.Spec.CSI.Driver, nil
}

// source returns a snapshot's source claim and the claim's volume.
func (r *snapshotter) source(s *snapshotv1.VolumeSnapshot) (*corev1.PersistentVolumeClaim, *corev1.PersistentVolume, error) {
	name := *s.Spec.Source.PersistentVolumeClaimName
	claim, err := r.claims.PersistentVolumeClaims(s.Namespace).Get(name)
	if apierrors.IsNotFound(err) {
		return nil, nil, userErrorf("PersistentVolumeClaim %q does not exist", name)
	}
	if err != nil {
		return nil, nil, err
	}
	if claim.Status.Phase != corev1.ClaimBound || claim.Spec.VolumeName == "" {
		return nil, nil, userErrorf("PersistentVolumeClaim %q is not bound to a volume", name)
	}
	volume, err := r.volumes.Get(claim.Spec.VolumeName)
	if apierrors.IsNotFound(err) {
		return nil, nil, userErrorf("PersistentVolume %q, to which PersistentVolumeClaim %q is bound, does not exist", claim.Spec.VolumeName, name)
	}
	if err != nil {
		return nil, nil, err
	}
	// A user can create a claim that names another claim's volume.
	if ref := volume.Spec.ClaimRef; ref == nil || ref.UID != claim.UID {
		return nil, nil, userErrorf("PersistentVolume %q is not bound to PersistentVolumeClaim %q", volume.Name, name)
	}
	if volume.Spec.CSI == nil {
		return nil, nil, userErrorf("PersistentVolume %q is not a CSI volume, so it does not support snapshots", volume.Name)
	}
	return claim, volume, nil
}

// isReporter reports whether this controller reports errors in snapshots that no controller is
// responsible for. If the driver serves each node separately, the node whose name sorts first
// reports these errors.
func (r *snapshotter) isReporter() bool {
	if r.Node == "" {
		return true
	}
	nodes, err := r.csiNodes.List(labels.Everything())
	if err != nil {
		return false
	}
	firstNode := r.Node
	for _, node := range nodes {
		if slices.ContainsFunc(node.Spec.Drivers, func(d storagev1.CSINodeDriver) bool { return d.Name == r.driver }) {
			firstNode = min(firstNode, node.Name)
		}
	}
	return firstNode == r.Node
}

// class returns a class by its name.
func (r *snapshotter) class(name string) (*snapshotv1.VolumeSnapshotClass, error) {
	class, err := r.classes.Get(name)
	if apierrors.IsNotFound(err) {
		return nil, userErrorf("VolumeSnapshotClass %q does not exist", name)
	}
	return class, err
}

// defaultClassOf returns the driver's default class. Multiple default classes are an error.
func (r *snapshotter) defaultClassOf() (*snapshotv1.VolumeSnapshotClass, error) {
	classes, err := r.classes.List(labels.Everything())
	if err != nil {
		return nil, err
	}
	var names []string
	var class *snapshotv1.VolumeSnapshotClass
	for _, candidate := range classes {
		if candidate.Driver == r.driver && candidate.Annotations[defaultClass] == "true" {
			class, names = candidate, append(names, candidate.Name)
		}
	}
	slices.Sort(names)
	switch len(names) {
	case 1:
		return class, nil
	case 0:
		return nil, userErrorf("the snapshot has no VolumeSnapshotClass, and CSI driver %q has no default class; set spec.volumeSnapshotClassName, or annotation %s of a class", r.driver, defaultClass)
	default:
		return nil, userErrorf("the snapshot has no VolumeSnapshotClass, and CSI driver %q has several default classes: %q", r.driver, names)
	}
}
