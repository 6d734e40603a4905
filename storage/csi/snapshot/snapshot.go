// Package snapshot takes, keeps and deletes snapshots of volumes as VolumeSnapshots ask for it (group snapshot.storage.k8s.io/v1
// of the community's external-snapshotter 8.7). What the community divides between a common controller and a sidecar for each
// driver is one loop here: it looks at a VolumeSnapshot and at its VolumeSnapshotContent together, so that nothing can come
// between the two.
//
// Nothing leaks whenever the process ends: the content is there before CreateSnapshot is called, and carries an annotation until
// the outcome is known; whoever deletes the content meanwhile asks for the outcome first.
package snapshot

import (
	"context"
	"errors"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	snapshotlisters "github.com/kubernetes-csi/external-snapshotter/client/v8/listers/volumesnapshot/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	corelisters "k8s.io/client-go/listers/core/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/slipway-platform/slipway/controller"
	"github.com/slipway-platform/slipway/storage/csi/session"
)

// Options are what an administrator may choose.
type Options struct {
	// Workers is how many snapshots are worked on at once; 0 means 10.
	Workers int
	// Retry is the first delay after an error; 0 means 1 second.
	Retry time.Duration
	// Poll is the first delay before a snapshot that is not ready is looked at again; it grows with the snapshot's age to a
	// minute. 0 means 1 second.
	Poll time.Duration
}

// snapshotter serves the snapshots of one driver.
type snapshotter struct {
	*session.Session
	Options
	driver    string
	takes     bool // CREATE_DELETE_SNAPSHOT
	snapshots snapshotlisters.VolumeSnapshotLister
	contents  snapshotlisters.VolumeSnapshotContentLister
	classes   snapshotlisters.VolumeSnapshotClassLister
	byClaim   cache.Indexer // snapshots
	byRef     cache.Indexer // contents
	claims    corelisters.PersistentVolumeClaimLister
	volumes   corelisters.PersistentVolumeLister
	csiNodes  storagelisters.CSINodeLister
}

// The indices of the caches.
const (
	byClaim = "snapshot-claim"
	byRef   = "snapshot-reference"
)

// Feature makes the loop of a driver. A driver that can do nothing with snapshots has one too, which says so to users.
func Feature(options Options) session.Feature {
	if options.Poll == 0 {
		options.Poll = time.Second
	}
	return func(s *session.Session) ([]controller.Loop, error) {
		if s.SnapshotInformers == nil {
			return nil, nil
		}
		objects, core := s.SnapshotInformers.Snapshot().V1(), s.Informers.Core().V1()
		r := &snapshotter{
			Session: s, Options: options, driver: s.Description.Name,
			takes:     s.Description.Can(csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT),
			snapshots: objects.VolumeSnapshots().Lister(), contents: objects.VolumeSnapshotContents().Lister(),
			classes: objects.VolumeSnapshotClasses().Lister(),
			byClaim: objects.VolumeSnapshots().Informer().GetIndexer(), byRef: objects.VolumeSnapshotContents().Informer().GetIndexer(),
			claims:   core.PersistentVolumeClaims().Lister(),
			volumes:  core.PersistentVolumes().Lister(),
			csiNodes: s.Informers.Storage().V1().CSINodes().Lister(),
		}
		if err := s.Index(objects.VolumeSnapshots().Informer(), byClaim, claimOf); err != nil {
			return nil, err
		}
		if err := s.Index(objects.VolumeSnapshotContents().Informer(), byRef, refOf); err != nil {
			return nil, err
		}
		return []controller.Loop{r.loop()}, nil
	}
}

func (r *snapshotter) loop() controller.Loop {
	objects, core := r.SnapshotInformers.Snapshot().V1(), r.Informers.Core().V1()
	return controller.Loop{
		Name: "snapshot",
		Watches: []controller.Watch{
			{Informer: objects.VolumeSnapshots().Informer(), Changed: snapshotChanged},
			{Informer: objects.VolumeSnapshotContents().Informer(), Keys: contentKeys, Changed: contentChanged},
			{Informer: objects.VolumeSnapshotClasses().Informer(), Keys: r.classKeys},
			{Informer: core.PersistentVolumeClaims().Informer(), Keys: r.claimKeys, Changed: claimChanged},
		},
		Reads: []cache.SharedIndexInformer{
			core.PersistentVolumes().Informer(), core.Nodes().Informer(), r.Informers.Storage().V1().CSINodes().Informer(),
		},
		Reconcile: r.reconcile, Workers: r.Workers, Retry: r.Retry,
	}
}

// reconcile looks at one VolumeSnapshot, which may be gone, and at every content that refers to it.
func (r *snapshotter) reconcile(ctx context.Context, key controller.Key) error {
	snapshot, err := r.snapshots.VolumeSnapshots(key.Namespace).Get(key.Name)
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	var errs []error
	for _, content := range r.contentsOf(key) {
		if r.ours(content) && !bound(snapshot, content) {
			errs = append(errs, r.reconcileLoose(ctx, content))
		}
	}
	if snapshot != nil {
		errs = append(errs, r.reconcileSnapshot(ctx, snapshot.DeepCopy()))
	}
	return settle(errors.Join(errs...))
}

// reconcileSnapshot serves a snapshot of this driver.
func (r *snapshotter) reconcileSnapshot(ctx context.Context, s *snapshotv1.VolumeSnapshot) error {
	mine, err := r.mine(ctx, s)
	if err != nil {
		if s.DeletionTimestamp != nil && r.reports() {
			return r.release(ctx, s) // nothing of it is known in any storage
		}
		if !r.reports() {
			return nil
		}
		return r.report(ctx, s, err)
	}
	if !mine {
		return nil
	}
	if s.DeletionTimestamp != nil {
		return r.remove(ctx, s)
	}
	return r.provide(ctx, s)
}

// settle makes of a write that came too late another look, since the cache will soon show what was overlooked.
func settle(err error) error {
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return controller.After(50 * time.Millisecond)
	}
	return err
}
