// Package snapshot creates and deletes volume snapshots according to VolumeSnapshots (group
// snapshot.storage.k8s.io/v1 of the community's external-snapshotter 8.7). One controller does the
// work of both the community's common controller and its per-driver sidecar: it reconciles a
// VolumeSnapshot together with its VolumeSnapshotContent. This avoids races between the two
// objects.
//
// Snapshots are not leaked if the process is killed: the VolumeSnapshotContent exists before
// CreateSnapshot is called, and has an annotation until the outcome is known. If the
// VolumeSnapshotContent is deleted before the outcome is known, the controller first determines the
// outcome.
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

// Options configures the snapshot controller.
type Options struct {
	// Workers is the maximum number of snapshots that are processed concurrently. The default is
	// 10.
	Workers int
	// Retry is the backoff after the first error. The default is 1 second.
	Retry time.Duration
	// Poll is the first delay before an unready snapshot is checked again. The delay grows with the
	// snapshot's age, up to one minute. The default is 1 second.
	Poll time.Duration
}

// namespaceWorkers is the maximum number of snapshots of a namespace that are processed
// concurrently, because a driver can take long to copy large volumes.
const namespaceWorkers = 5

// snapshotter reconciles one driver's snapshots.
type snapshotter struct {
	*session.Session
	Options
	driver    string
	canCreate bool // true if the driver has CREATE_DELETE_SNAPSHOT
	snapshots snapshotlisters.VolumeSnapshotLister
	contents  snapshotlisters.VolumeSnapshotContentLister
	classes   snapshotlisters.VolumeSnapshotClassLister
	byClaim   cache.Indexer // VolumeSnapshots by source claim
	byRef     cache.Indexer // VolumeSnapshotContents by referenced snapshot
	claims    corelisters.PersistentVolumeClaimLister
	volumes   corelisters.PersistentVolumeLister
	csiNodes  storagelisters.CSINodeLister
}

// Names of the indexes.
const (
	byClaim = "snapshot-claim"
	byRef   = "snapshot-reference"
)

// Feature returns a driver's controller. A driver without snapshot support also has a controller,
// which reports the missing support to users.
func Feature(options Options) session.Feature {
	if options.Poll == 0 {
		options.Poll = time.Second
	}
	return func(s *session.Session) ([]controller.Controller, error) {
		if s.SnapshotInformers == nil {
			return nil, nil
		}
		objects, core := s.SnapshotInformers.Snapshot().V1(), s.Informers.Core().V1()
		r := &snapshotter{
			Session: s, Options: options, driver: s.Description.Name,
			canCreate: s.Description.Can(csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT),
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
		return []controller.Controller{r.controller()}, nil
	}
}

func (r *snapshotter) controller() controller.Controller {
	objects, core := r.SnapshotInformers.Snapshot().V1(), r.Informers.Core().V1()
	return controller.Controller{
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
		Reconcile: r.reconcile, Workers: r.Workers, NamespaceWorkers: namespaceWorkers, MinBackoff: r.Retry,
	}
}

// reconcile reconciles a VolumeSnapshot, if it exists, and all VolumeSnapshotContents that
// reference it.
func (r *snapshotter) reconcile(ctx context.Context, key controller.Key) error {
	snapshot, err := r.snapshots.VolumeSnapshots(key.Namespace).Get(key.Name)
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	var errs []error
	for _, content := range r.contentsOf(key) {
		if r.ownsContent(content) && !isBound(snapshot, content) {
			errs = append(errs, r.reconcileUnbound(ctx, content))
		}
	}
	if snapshot != nil {
		errs = append(errs, r.reconcileSnapshot(ctx, snapshot.DeepCopy()))
	}
	return requeueOnConflict(errors.Join(errs...))
}

// reconcileSnapshot reconciles a snapshot of this driver.
func (r *snapshotter) reconcileSnapshot(ctx context.Context, s *snapshotv1.VolumeSnapshot) error {
	own, err := r.isOwn(ctx, s)
	if err != nil {
		if s.DeletionTimestamp != nil && r.isReporter() {
			return r.removeFinalizers(ctx, s) // the snapshot does not exist in any storage
		}
		if !r.isReporter() {
			return nil
		}
		return r.report(ctx, s, err)
	}
	if !own {
		return nil
	}
	if s.DeletionTimestamp != nil {
		return r.remove(ctx, s)
	}
	return r.ensure(ctx, s)
}

// requeueOnConflict converts a conflict to a requeue, because the cache will soon contain the
// change.
func requeueOnConflict(err error) error {
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return controller.RequeueAfter(50 * time.Millisecond)
	}
	return err
}
