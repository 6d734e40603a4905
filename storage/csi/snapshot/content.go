package snapshot

import (
	"context"
	"fmt"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/slipway-platform/slipway/storage/csi/parameters"
)

// contentName returns the name of a snapshot's VolumeSnapshotContent: the name in the snapshot's
// spec, or the generated name.
func contentName(s *snapshotv1.VolumeSnapshot) string {
	if name := s.Spec.Source.VolumeSnapshotContentName; name != nil {
		return *name
	}
	return "snapcontent-" + string(s.UID)
}

// isBound reports whether the snapshot and the VolumeSnapshotContent reference each other.
func isBound(s *snapshotv1.VolumeSnapshot, c *snapshotv1.VolumeSnapshotContent) bool {
	return s != nil && contentName(s) == c.Name && refersTo(c, s) && c.Spec.VolumeSnapshotRef.UID == s.UID
}

// refersTo reports whether a VolumeSnapshotContent references a snapshot. The reference might have
// no UID yet.
func refersTo(c *snapshotv1.VolumeSnapshotContent, s *snapshotv1.VolumeSnapshot) bool {
	ref := c.Spec.VolumeSnapshotRef
	return ref.Namespace == s.Namespace && ref.Name == s.Name && (ref.UID == "" || ref.UID == s.UID)
}

// handleOf returns the driver's ID for a snapshot, or "" if the driver has not returned an ID yet.
func handleOf(c *snapshotv1.VolumeSnapshotContent) string {
	if c.Status != nil && c.Status.SnapshotHandle != nil {
		return *c.Status.SnapshotHandle
	}
	return ptr.Deref(c.Spec.Source.SnapshotHandle, "")
}

func isReady(s *snapshotv1.VolumeSnapshot) bool {
	return s.Status != nil && ptr.Deref(s.Status.ReadyToUse, false)
}

func contentReady(c *snapshotv1.VolumeSnapshotContent) bool {
	return c.Status != nil && ptr.Deref(c.Status.ReadyToUse, false) && c.Status.SnapshotHandle != nil
}

// getContent reads a VolumeSnapshotContent from the API server, bypassing the cache. It returns nil
// if the VolumeSnapshotContent does not exist.
func (r *snapshotter) getContent(ctx context.Context, name string) (*snapshotv1.VolumeSnapshotContent, error) {
	content, err := r.contentClient().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read VolumeSnapshotContent %q: %w", name, err)
	}
	return content, nil
}

// content returns a snapshot's VolumeSnapshotContent from the cache or, because the cache might be
// stale, from the API server. It returns nil if the VolumeSnapshotContent does not exist.
func (r *snapshotter) content(ctx context.Context, s *snapshotv1.VolumeSnapshot) (*snapshotv1.VolumeSnapshotContent, error) {
	content, err := r.contents.Get(contentName(s))
	if apierrors.IsNotFound(err) {
		return r.getContent(ctx, contentName(s))
	}
	return content.DeepCopy(), err
}

// bind makes the snapshot and its VolumeSnapshotContent reference each other. It creates the
// VolumeSnapshotContent of a dynamically provisioned snapshot.
func (r *snapshotter) bind(ctx context.Context, s *snapshotv1.VolumeSnapshot) (*snapshotv1.VolumeSnapshotContent, error) {
	content, err := r.content(ctx, s)
	switch {
	case err != nil:
		return nil, err
	case content == nil && s.Spec.Source.VolumeSnapshotContentName != nil:
		return nil, userErrorf("VolumeSnapshotContent %q does not exist", contentName(s))
	case content == nil:
		return r.create(ctx, s)
	case !refersTo(content, s):
		// Do not name the other VolumeSnapshot, because its namespace can belong to another user.
		return nil, userErrorf("VolumeSnapshotContent %q belongs to another VolumeSnapshot", content.Name)
	case content.Spec.VolumeSnapshotRef.UID == s.UID:
		return content, nil
	}
	content.Spec.VolumeSnapshotRef.UID = s.UID
	if content.Spec.VolumeSnapshotClassName == nil {
		content.Spec.VolumeSnapshotClassName = s.Spec.VolumeSnapshotClassName
	}
	return r.updateContent(ctx, content)
}

// create creates the VolumeSnapshotContent for a snapshot of a claim. An annotation on the
// VolumeSnapshotContent records that CreateSnapshot might have been called. The caller has added
// the snapshot's finalizers, and has confirmed with the API server that the snapshot is not being
// deleted. Therefore, the snapshot exists until this controller removes the finalizers.
func (r *snapshotter) create(ctx context.Context, s *snapshotv1.VolumeSnapshot) (*snapshotv1.VolumeSnapshotContent, error) {
	if !r.canCreate {
		return nil, userErrorf("CSI driver %q does not support creating snapshots", r.driver)
	}
	claim, volume, err := r.source(s)
	if err != nil {
		return nil, err
	}
	if volume.Spec.CSI.Driver != r.driver {
		return nil, userErrorf("the class belongs to CSI driver %q, but PersistentVolume %q belongs to %q", r.driver, volume.Name, volume.Spec.CSI.Driver)
	}
	class, err := r.class(*s.Spec.VolumeSnapshotClassName)
	if err != nil {
		return nil, err
	}
	secret, err := parameters.Secret(class.Parameters, parameters.Snapshotter, secretValues(contentName(s), s))
	if err != nil {
		return nil, userError{err}
	}
	if err := r.protect(ctx, claim); err != nil {
		return nil, err
	}
	content := &snapshotv1.VolumeSnapshotContent{
		ObjectMeta: metav1.ObjectMeta{
			Name: contentName(s), Finalizers: []string{contentFinalizer}, Annotations: map[string]string{beingCreated: yes},
		},
		Spec: snapshotv1.VolumeSnapshotContentSpec{
			VolumeSnapshotRef: reference(s), DeletionPolicy: class.DeletionPolicy, Driver: r.driver, VolumeSnapshotClassName: &class.Name,
			Source:           snapshotv1.VolumeSnapshotContentSource{VolumeHandle: &volume.Spec.CSI.VolumeHandle},
			SourceVolumeMode: volume.Spec.VolumeMode,
		},
	}
	if secret != nil {
		content.Annotations[secretName], content.Annotations[secretNamespace] = secret.Name, secret.Namespace
	}
	if r.Node != "" {
		content.Labels = map[string]string{managedBy: r.Node}
	}
	created, err := r.contentClient().Create(ctx, content, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("create VolumeSnapshotContent %q: %w", content.Name, err)
	}
	r.recordEvent(s, corev1.EventTypeNormal, "CreatingSnapshot", "The snapshot of PersistentVolumeClaim %q is being created.", claim.Name)
	return created, nil
}

// secretValues returns the variables for secret templates. The snapshot's name, which a user
// chooses, must not determine a namespace.
func secretValues(content string, s *snapshotv1.VolumeSnapshot) parameters.Values {
	return parameters.Values{
		Name:      map[string]string{"volumesnapshotcontent.name": content, "volumesnapshot.namespace": s.Namespace, "volumesnapshot.name": s.Name},
		Namespace: map[string]string{"volumesnapshotcontent.name": content, "volumesnapshot.namespace": s.Namespace},
	}
}

func reference(s *snapshotv1.VolumeSnapshot) corev1.ObjectReference {
	return corev1.ObjectReference{
		APIVersion: snapshotv1.SchemeGroupVersion.String(), Kind: "VolumeSnapshot", Namespace: s.Namespace, Name: s.Name, UID: s.UID,
		ResourceVersion: s.ResourceVersion,
	}
}
