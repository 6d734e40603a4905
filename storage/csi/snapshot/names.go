package snapshot

// Kubernetes' external-snapshotter uses the same names, so its objects and tools continue to work
// with Slipway.
const (
	prefix = "snapshot.storage.kubernetes.io/"

	// contentFinalizer protects a VolumeSnapshotContent until the deletion policy has been applied
	// to its snapshot in the storage system.
	contentFinalizer = prefix + "volumesnapshotcontent-bound-protection"
	// boundFinalizer protects a VolumeSnapshot until the deletion policy has been applied to its
	// VolumeSnapshotContent.
	boundFinalizer = prefix + "volumesnapshot-bound-protection"
	// sourceFinalizer protects a VolumeSnapshot while a volume is being restored from it.
	sourceFinalizer = prefix + "volumesnapshot-as-source-protection"
	// claimFinalizer protects a claim while a snapshot of its volume is being created.
	claimFinalizer = prefix + "pvc-as-source-protection"

	// beingCreated marks a VolumeSnapshotContent for which CreateSnapshot might have been called
	// with an unknown outcome.
	beingCreated = prefix + "volumesnapshot-being-created"
	// defaultClass marks the class for snapshots that do not specify a class.
	defaultClass = prefix + "is-default-class"
	// secretName and secretNamespace record the secret for deleting a VolumeSnapshotContent's
	// snapshot, because the class might be deleted before the snapshot.
	secretName      = prefix + "deletion-secret-name"
	secretNamespace = prefix + "deletion-secret-namespace"
	// managedBy is the label that contains the snapshot's node, if the driver serves a single node.
	managedBy = prefix + "managed-by"
)

const yes = "yes"

// ClaimFinalizers returns the claim finalizers that the controller changes.
func ClaimFinalizers() []string { return []string{claimFinalizer} }

// Finalizers returns the VolumeSnapshot finalizers that the controller changes.
func Finalizers() []string { return []string{boundFinalizer, sourceFinalizer} }
