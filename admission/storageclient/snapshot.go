package storageclient

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// snapshotVersion is the API version of snapshots.
var snapshotVersion = schema.GroupVersion{Group: "snapshot.storage.k8s.io", Version: "v1"}

// checkSnapshot accepts updates to the driver's snapshots. For a snapshot whose driver is unknown,
// it also accepts status changes, which report errors, and changes after the snapshot has been
// marked for deletion.
func (p *plugin) checkSnapshot(ctx context.Context, old, object runtime.Object) error {
	before, existed := old.(*unstructured.Unstructured)
	after, exists := object.(*unstructured.Unstructured)
	if !existed || !exists {
		return errors.New("the client of local storage can only update snapshots")
	}
	if err := checkMetadata(before, after, p.SnapshotFinalizers, nil); err != nil {
		return err
	}
	if err := p.checkSnapshotSpec(ctx, before, after); err != nil {
		return err
	}
	content, err := p.contentDriver(ctx, before)
	if err != nil {
		return err
	}
	driver, err := p.snapshotDriver(ctx, before, content)
	if err != nil {
		return err
	}
	deleted := before.GetDeletionTimestamp() != nil
	switch {
	case driver == p.Driver, deleted && (driver == "" || content == p.Driver):
		return nil
	case driver == "" && equality.Semantic.DeepEqual(before.Object["spec"], after.Object["spec"]) &&
		equality.Semantic.DeepEqual(before.GetFinalizers(), after.GetFinalizers()):
		return nil // only the status changes
	}
	return p.checkDriver("the driver of the snapshot", driver)
}

// checkSnapshotSpec rejects spec changes, except that the driver can set its default class.
func (p *plugin) checkSnapshotSpec(ctx context.Context, before, after *unstructured.Unstructured) error {
	expected := before.DeepCopy()
	if name := nested(after, "spec", "volumeSnapshotClassName"); name != "" && nested(before, "spec", "volumeSnapshotClassName") == "" {
		driver, err := p.read(ctx, "volumesnapshotclasses", name, "driver")
		if err != nil {
			return err
		}
		if err := p.checkDriver("spec.volumeSnapshotClassName", driver); err != nil {
			return err
		}
		if err := unstructured.SetNestedField(expected.Object, name, "spec", "volumeSnapshotClassName"); err != nil {
			return err
		}
	}
	if !equality.Semantic.DeepEqual(expected.Object["spec"], after.Object["spec"]) {
		return errors.New("spec: the client of local storage must not change the spec of snapshots")
	}
	return nil
}

// snapshotDriver returns the driver of a snapshot, or "" if the driver is unknown. content is the
// driver of the snapshot's VolumeSnapshotContent. Unless the snapshot's spec specifies the
// VolumeSnapshotContent, the snapshot's class takes precedence over content, because the client can
// create a VolumeSnapshotContent for any snapshot.
func (p *plugin) snapshotDriver(ctx context.Context, snapshot *unstructured.Unstructured, content string) (string, error) {
	if nested(snapshot, "spec", "source", "volumeSnapshotContentName") != "" {
		return content, nil
	}
	if class := nested(snapshot, "spec", "volumeSnapshotClassName"); class != "" {
		driver, err := p.read(ctx, "volumesnapshotclasses", class, "driver")
		if driver != "" || err != nil {
			return driver, err
		}
		return content, nil
	}
	if content != "" {
		return content, nil
	}
	name := nested(snapshot, "spec", "source", "persistentVolumeClaimName")
	claim, err := p.kube.CoreV1().PersistentVolumeClaims(snapshot.GetNamespace()).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) || err == nil && claim.Spec.VolumeName == "":
		return "", nil
	case err != nil:
		return "", fmt.Errorf("read PersistentVolumeClaim %q: %w", name, err)
	}
	driver, err := p.volumeDriver(ctx, claim.Spec.VolumeName)
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	return driver, err
}

// contentDriver returns the driver of the snapshot's VolumeSnapshotContent, or "" if the snapshot
// has no VolumeSnapshotContent.
func (p *plugin) contentDriver(ctx context.Context, snapshot *unstructured.Unstructured) (string, error) {
	name := nested(snapshot, "spec", "source", "volumeSnapshotContentName")
	if name == "" {
		name = "snapcontent-" + string(snapshot.GetUID())
	}
	return p.read(ctx, "volumesnapshotcontents", name, "spec", "driver")
}

// read returns a string field of a cluster-scoped object, or "" if the object does not exist.
func (p *plugin) read(ctx context.Context, resource, name string, field ...string) (string, error) {
	object, err := p.dynamic.Resource(snapshotVersion.WithResource(resource)).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read %s %q: %w", resource, name, err)
	}
	return nested(object, field...), nil
}

// nested returns a string field of an object, or "" if the field does not exist.
func nested(object *unstructured.Unstructured, field ...string) string {
	text, _, _ := unstructured.NestedString(object.Object, field...)
	return text
}
