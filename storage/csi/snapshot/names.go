package snapshot

// Names of the community's snapshotter, so that its objects and tools continue to work.
const (
	prefix = "snapshot.storage.kubernetes.io/"

	// contentFinalizer protects a VolumeSnapshotContent until its snapshot in the storage is
	// deleted or retained.
	contentFinalizer = prefix + "volumesnapshotcontent-bound-protection"
	// boundFinalizer protects a VolumeSnapshot until its content is deleted or retained.
	boundFinalizer = prefix + "volumesnapshot-bound-protection"
	// sourceFinalizer protects a VolumeSnapshot while a volume is restored from it.
	sourceFinalizer = prefix + "volumesnapshot-as-source-protection"
	// claimFinalizer protects a claim while a snapshot of its volume is created.
	claimFinalizer = prefix + "pvc-as-source-protection"

	// beingCreated marks a content for which CreateSnapshot might have been called with an unknown
	// outcome.
	beingCreated = prefix + "volumesnapshot-being-created"
	// defaultClass marks the class for snapshots without a class.
	defaultClass = prefix + "is-default-class"
	// secretName and secretNamespace store the secret for deleting a content, because the class
	// might be gone by then.
	secretName      = prefix + "deletion-secret-name"
	secretNamespace = prefix + "deletion-secret-namespace"
	// managedBy is the label with the node of the snapshot, for drivers that serve one node each.
	managedBy = prefix + "managed-by"
)

const yes = "yes"

// ClaimFinalizers returns the finalizers of claims that the controller changes.
func ClaimFinalizers() []string { return []string{claimFinalizer} }

// Finalizers returns the finalizers of VolumeSnapshots that the controller changes.
func Finalizers() []string { return []string{boundFinalizer, sourceFinalizer} }
