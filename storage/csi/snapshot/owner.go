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

// mine tells whether this loop serves a snapshot. The error is one for its user: nobody can tell yet.
func (r *snapshotter) mine(ctx context.Context, s *snapshotv1.VolumeSnapshot) (bool, error) {
	content, err := r.contents.Get(contentName(s))
	if apierrors.IsNotFound(err) && s.Spec.Source.VolumeSnapshotContentName != nil {
		content, err = r.live(ctx, contentName(s))
	}
	switch {
	case err == nil && content != nil:
		return r.ours(content), r.nodeKnown(content)
	case err != nil && !apierrors.IsNotFound(err):
		return false, err
	case s.Spec.Source.VolumeSnapshotContentName != nil:
		return false, problemf("no VolumeSnapshotContent %q: make it, or correct spec.source of a new VolumeSnapshot", contentName(s))
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
		return false, problemf("PersistentVolume %q has no node affinity: which node's CSI driver %q holds it is not known", volume.Name, r.driver)
	}
	return r.Holds(volume)
}

// ours tells whether a content belongs to the driver, and to this node if the driver serves one only.
func (r *snapshotter) ours(c *snapshotv1.VolumeSnapshotContent) bool {
	return c.Spec.Driver == r.driver && (r.Node == "" || c.Labels[managedBy] == r.Node)
}

// nodeKnown finds a content of which no node feels in charge.
func (r *snapshotter) nodeKnown(c *snapshotv1.VolumeSnapshotContent) error {
	if r.Node == "" || c.Spec.Driver != r.driver || c.Labels[managedBy] != "" {
		return nil
	}
	return problemf("CSI driver %q serves each node by itself: name the snapshot's node in the label %s of VolumeSnapshotContent %q", r.driver, managedBy, c.Name)
}

// driverOf is the driver of the snapshot's class, or of its volume.
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

// source is the claim that a snapshot is taken of, and its volume.
func (r *snapshotter) source(s *snapshotv1.VolumeSnapshot) (*corev1.PersistentVolumeClaim, *corev1.PersistentVolume, error) {
	name := *s.Spec.Source.PersistentVolumeClaimName
	claim, err := r.claims.PersistentVolumeClaims(s.Namespace).Get(name)
	if apierrors.IsNotFound(err) {
		return nil, nil, problemf("no PersistentVolumeClaim %q", name)
	}
	if err != nil {
		return nil, nil, err
	}
	if claim.Status.Phase != corev1.ClaimBound || claim.Spec.VolumeName == "" {
		return nil, nil, problemf("PersistentVolumeClaim %q is not bound to a volume", name)
	}
	volume, err := r.volumes.Get(claim.Spec.VolumeName)
	if apierrors.IsNotFound(err) {
		return nil, nil, problemf("no PersistentVolume %q, to which PersistentVolumeClaim %q is bound", claim.Spec.VolumeName, name)
	}
	if err != nil {
		return nil, nil, err
	}
	if volume.Spec.CSI == nil {
		return nil, nil, problemf("PersistentVolume %q is of no CSI driver: snapshots of it cannot be taken", volume.Name)
	}
	return claim, volume, nil
}

// reports tells whether this loop speaks for its driver about snapshots that no loop feels in charge of: of the nodes that the
// driver serves one by one, the first does.
func (r *snapshotter) reports() bool {
	if r.Node == "" {
		return true
	}
	nodes, err := r.csiNodes.List(labels.Everything())
	if err != nil {
		return false
	}
	first := r.Node
	for _, node := range nodes {
		if slices.ContainsFunc(node.Spec.Drivers, func(d storagev1.CSINodeDriver) bool { return d.Name == r.driver }) {
			first = min(first, node.Name)
		}
	}
	return first == r.Node
}

// class finds a class by its name.
func (r *snapshotter) class(name string) (*snapshotv1.VolumeSnapshotClass, error) {
	class, err := r.classes.Get(name)
	if apierrors.IsNotFound(err) {
		return nil, problemf("no VolumeSnapshotClass %q", name)
	}
	return class, err
}

// chooseClass is the default class of the driver. With several, none is.
func (r *snapshotter) chooseClass() (*snapshotv1.VolumeSnapshotClass, error) {
	classes, err := r.classes.List(labels.Everything())
	if err != nil {
		return nil, err
	}
	var found []string
	var chosen *snapshotv1.VolumeSnapshotClass
	for _, class := range classes {
		if class.Driver == r.driver && class.Annotations[defaultClass] == "true" {
			chosen, found = class, append(found, class.Name)
		}
	}
	slices.Sort(found)
	switch len(found) {
	case 1:
		return chosen, nil
	case 0:
		return nil, problemf("no VolumeSnapshotClass is named, and none of CSI driver %q is the default: set spec.volumeSnapshotClassName, or annotation %s of a class", r.driver, defaultClass)
	default:
		return nil, problemf("no VolumeSnapshotClass is named, and several of CSI driver %q are the default: %q", r.driver, found)
	}
}
