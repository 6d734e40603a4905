package provision

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// snapshotGroup is the API group of snapshots.
const snapshotGroup = "snapshot.storage.k8s.io"

// allowModeChange is an annotation on a VolumeSnapshotContent. An administrator sets it to allow
// restoring the snapshot to a volume with a different volume mode.
const allowModeChange = "snapshot.storage.kubernetes.io/allow-volume-mode-change"

// dataSource returns the claim's data source, or nil.
func dataSource(claim *corev1.PersistentVolumeClaim) *corev1.TypedObjectReference {
	if reference := claim.Spec.DataSourceRef; reference != nil {
		return reference
	}
	if source := claim.Spec.DataSource; source != nil {
		return &corev1.TypedObjectReference{APIGroup: source.APIGroup, Kind: source.Kind, Name: source.Name}
	}
	return nil
}

func kindOf(source *corev1.TypedObjectReference) schema.GroupKind {
	kind := schema.GroupKind{Kind: source.Kind}
	if source.APIGroup != nil {
		kind.Group = *source.APIGroup
	}
	return kind
}

var (
	claimKind    = schema.GroupKind{Kind: "PersistentVolumeClaim"}
	snapshotKind = schema.GroupKind{Group: snapshotGroup, Kind: "VolumeSnapshot"}
)

// supportedSource reports whether this package supports the claim's data source. Volume populators
// handle other data sources with their own claims.
func supportedSource(claim *corev1.PersistentVolumeClaim) bool {
	source := dataSource(claim)
	return source == nil || kindOf(source) == claimKind || kindOf(source) == snapshotKind
}

// planSource sets the content source.
func (p *provisioner) planSource(ctx context.Context, plan *plan) (err error) {
	source := dataSource(plan.claim)
	if source == nil {
		return nil
	}
	if source.Namespace != nil && *source.Namespace != "" && *source.Namespace != plan.claim.Namespace {
		return fmt.Errorf("use data source %s %q: it is in another namespace, %q", source.Kind, source.Name, *source.Namespace)
	}
	if kindOf(source) == claimKind {
		plan.request.VolumeContentSource, err = p.clone(plan, source.Name)
	} else {
		plan.request.VolumeContentSource, err = p.snapshot(ctx, plan, source.Name)
	}
	if err != nil {
		return fmt.Errorf("use data source %s %q: %w", source.Kind, source.Name, err)
	}
	return nil
}

// clone returns the volume of another claim as the content source.
func (p *provisioner) clone(plan *plan, name string) (*csi.VolumeContentSource, error) {
	if !p.Description.Can(csi.ControllerServiceCapability_RPC_CLONE_VOLUME) {
		return nil, errors.New("the driver cannot clone volumes (CLONE_VOLUME)")
	}
	claim, err := p.claimsByNS.PersistentVolumeClaims(plan.claim.Namespace).Get(name)
	if err != nil {
		return nil, err
	}
	// The finalizer keeps the source claim until the clone is complete.
	started := isPending(plan.claim) && slices.Contains(claim.Finalizers, cloningFinalizer)
	if claim.DeletionTimestamp != nil && !started || claim.Status.Phase != corev1.ClaimBound || claim.Spec.VolumeName == "" {
		return nil, errors.New("it is not bound, or is being deleted")
	}
	existing, err := p.volumes.Get(claim.Spec.VolumeName)
	if err != nil {
		return nil, err
	}
	pv, err := p.OwnVolume(existing)
	switch {
	case err != nil:
		return nil, err
	case pv == nil:
		return nil, fmt.Errorf("its volume belongs to a driver other than %q", p.name)
	case pv.Spec.ClaimRef == nil || pv.Spec.ClaimRef.UID != claim.UID:
		return nil, fmt.Errorf("its PersistentVolume %q is bound to another claim", pv.Name)
	case isBlock(pv.Spec.VolumeMode) != isBlock(plan.claim.Spec.VolumeMode):
		return nil, errors.New("its volume mode is different")
	}
	if err := plan.checkSize(pv.Spec.Capacity[corev1.ResourceStorage]); err != nil {
		return nil, err
	}
	plan.cloneSource = claim
	volume := &csi.VolumeContentSource_VolumeSource{VolumeId: pv.Spec.CSI.VolumeHandle}
	return &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Volume{Volume: volume}}, nil
}

// checkSize checks that the new volume is large enough for its source.
func (plan *plan) checkSize(size resource.Quantity) error {
	if request := plan.claim.Spec.Resources.Requests[corev1.ResourceStorage]; request.Cmp(size) < 0 {
		return fmt.Errorf("the claim requests %s, less than its size of %s", request.String(), size.String())
	}
	return nil
}

func isBlock(mode *corev1.PersistentVolumeMode) bool {
	return mode != nil && *mode == corev1.PersistentVolumeBlock
}

// snapshot returns a VolumeSnapshot as the content source.
func (p *provisioner) snapshot(ctx context.Context, plan *plan, name string) (*csi.VolumeContentSource, error) {
	if !p.Description.Can(csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT) {
		return nil, errors.New("the driver does not support snapshots (CREATE_DELETE_SNAPSHOT)")
	}
	version := schema.GroupVersion{Group: snapshotGroup, Version: "v1"}
	snapshot, err := p.dynamic.Resource(version.WithResource("volumesnapshots")).Namespace(plan.claim.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	ready, _, _ := unstructured.NestedBool(snapshot.Object, "status", "readyToUse")
	contentName, _, _ := unstructured.NestedString(snapshot.Object, "status", "boundVolumeSnapshotContentName")
	if !ready || contentName == "" || snapshot.GetDeletionTimestamp() != nil {
		return nil, errors.New("it is not ready to use, or is being deleted")
	}
	content, err := p.dynamic.Resource(version.WithResource("volumesnapshotcontents")).Get(ctx, contentName, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	handle, err := p.snapshotHandle(plan, snapshot, content)
	if err != nil {
		return nil, err
	}
	source := &csi.VolumeContentSource_SnapshotSource{SnapshotId: handle}
	return &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Snapshot{Snapshot: source}}, nil
}

// snapshotHandle returns a snapshot's handle. It first validates that the snapshot belongs to the
// driver, that the snapshot and its VolumeSnapshotContent refer to each other, and that the
// snapshot fits the new volume.
func (p *provisioner) snapshotHandle(plan *plan, snapshot, content *unstructured.Unstructured) (string, error) {
	driverName, _, _ := unstructured.NestedString(content.Object, "spec", "driver")
	boundTo, _, _ := unstructured.NestedString(content.Object, "spec", "volumeSnapshotRef", "uid")
	mode, _, _ := unstructured.NestedString(content.Object, "spec", "sourceVolumeMode")
	handle, _, _ := unstructured.NestedString(content.Object, "status", "snapshotHandle")
	size, sized, _ := unstructured.NestedInt64(content.Object, "status", "restoreSize")
	block := mode == string(corev1.PersistentVolumeBlock)
	switch {
	case driverName != p.name:
		return "", fmt.Errorf("it belongs to another driver, %q", driverName)
	case boundTo != string(snapshot.GetUID()):
		return "", fmt.Errorf("its VolumeSnapshotContent %q is bound to another snapshot", content.GetName())
	case handle == "":
		return "", fmt.Errorf("its VolumeSnapshotContent %q has no handle yet", content.GetName())
	case mode != "" && block != isBlock(plan.claim.Spec.VolumeMode) && content.GetAnnotations()[allowModeChange] != "true":
		return "", fmt.Errorf("it was taken from a volume of mode %s; to allow another mode, an administrator must set the annotation %s of its VolumeSnapshotContent", mode, allowModeChange)
	}
	if !sized {
		return handle, nil
	}
	return handle, plan.checkSize(*resource.NewQuantity(size, resource.BinarySI))
}
