package snapshot

// Names that the community's snapshotter gave. Objects that it made are taken over, and tools that know them go on working.
const (
	prefix = "snapshot.storage.kubernetes.io/"

	// contentFinalizer holds a VolumeSnapshotContent until its snapshot is deleted in the storage, or kept there for good.
	contentFinalizer = prefix + "volumesnapshotcontent-bound-protection"
	// boundFinalizer holds a VolumeSnapshot until its content is gone or let go.
	boundFinalizer = prefix + "volumesnapshot-bound-protection"
	// sourceFinalizer holds a VolumeSnapshot while a volume is made from it.
	sourceFinalizer = prefix + "volumesnapshot-as-source-protection"
	// claimFinalizer holds a claim while a snapshot of its volume is taken.
	claimFinalizer = prefix + "pvc-as-source-protection"

	// beingCreated marks a content for which CreateSnapshot may have been called and whose outcome is not known.
	beingCreated = prefix + "volumesnapshot-being-created"
	// defaultClass marks the class that is used when a snapshot names none.
	defaultClass = prefix + "is-default-class"
	// secretName and secretNamespace keep the secret of a content for its deletion, when the class may be gone.
	secretName      = prefix + "deletion-secret-name"
	secretNamespace = prefix + "deletion-secret-namespace"
	// managedBy is the label that names the node whose driver holds the snapshot, for drivers that serve one node each.
	managedBy = prefix + "managed-by"
)

const yes = "yes"
