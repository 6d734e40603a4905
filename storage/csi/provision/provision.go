// Package provision makes volumes of a CSI driver for claims and deletes them (document "CSI Volume Plugins in Kubernetes", Provisioning and Deleting).
//
// A volume is never leaked. Before CreateVolume is called, a finalizer on the claim says durably that there may be a volume; it is removed when a
// PersistentVolume answers for the volume, or when it is certain that there is none. So a claim that is deleted meanwhile, in whatever moment the
// process dies, is seen again: its volume is found by repeating CreateVolume with the same name, which is derived from the claim's UID, and deleted.
package provision

import (
	"errors"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/dynamic"
	corelisters "k8s.io/client-go/listers/core/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/slipway-platform/slipway/controller"
	"github.com/slipway-platform/slipway/storage/csi/session"
)

// Options are what an administrator may choose.
type Options struct {
	// Workers is how many volumes the driver is asked to make, and how many to delete, at once; 0 means 100 each.
	Workers int
	// FSType is the file system of volumes whose StorageClass names none; the driver chooses if it is empty.
	FSType string
	// ExtraMetadata adds the names of claim and PersistentVolume to the parameters of CreateVolume.
	ExtraMetadata bool
	// Strict gives the driver no other topology than the selected node's.
	Strict bool
	// NoSpread switches off that volumes of a StatefulSet are spread over the topology.
	NoSpread bool
	// Retry is the delay after the first error, which doubles up to RetryMax; 0 means 1 second and 5 minutes.
	Retry, RetryMax time.Duration
}

const (
	// pending on a claim says that there may be a volume that no PersistentVolume answers for yet.
	pending = "csi.slipway.io/provisioning"
	// finalizer holds a PersistentVolume until its volume is gone. It is that of the external provisioner, whose volumes are taken over.
	finalizer = "external-provisioner.volume.kubernetes.io/finalizer"
	// provisionedBy on a PersistentVolume names the driver.
	provisionedBy = "pv.kubernetes.io/provisioned-by"
	// byUID finds claims by the name of the volume that is made for them.
	byUID = "volumeName"
)

// provisioner makes and deletes volumes of one driver.
type provisioner struct {
	*session.Session
	Options
	name       string
	publishes  bool
	topology   bool
	dynamic    dynamic.Interface
	claims     cache.Indexer
	claimsByNS corelisters.PersistentVolumeClaimLister
	volumes    corelisters.PersistentVolumeLister
	classes    storagelisters.StorageClassLister
	attributes storagelisters.VolumeAttributesClassLister
	nodes      corelisters.NodeLister

	creates, deletes session.Places
	deleted          deleted
}

// Feature makes the loops of a driver that can create and delete volumes.
func Feature(options Options) session.Feature {
	return func(s *session.Session) ([]controller.Loop, error) {
		if !s.Description.Can(csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME) {
			return nil, nil
		}
		if options.Workers == 0 {
			options.Workers = 100
		}
		core, storage := s.Informers.Core().V1(), s.Informers.Storage().V1()
		p := &provisioner{
			Session: s, Options: options, name: s.Description.Name,
			publishes:  s.Description.Can(csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME) && s.Node == "",
			topology:   s.Description.Offers(csi.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS),
			claims:     core.PersistentVolumeClaims().Informer().GetIndexer(),
			claimsByNS: core.PersistentVolumeClaims().Lister(),
			volumes:    core.PersistentVolumes().Lister(),
			classes:    storage.StorageClasses().Lister(),
			attributes: storage.VolumeAttributesClasses().Lister(),
			nodes:      core.Nodes().Lister(),
			creates:    make(session.Places, options.Workers),
			deletes:    make(session.Places, options.Workers),
		}
		if s.Node != "" && !p.topology {
			return nil, errors.New("provision for one node: the driver has no topology (VOLUME_ACCESSIBILITY_CONSTRAINTS), so its volumes belong to no node")
		}
		if s.Config != nil {
			client, err := dynamic.NewForConfig(s.Config)
			if err != nil {
				return nil, err
			}
			p.dynamic = client
		}
		return p.loops()
	}
}

func (p *provisioner) loops() ([]controller.Loop, error) {
	core, storage := p.Informers.Core().V1(), p.Informers.Storage().V1()
	claims, volumes := core.PersistentVolumeClaims().Informer(), core.PersistentVolumes().Informer()
	if err := p.Index(claims, byUID, claimVolume); err != nil {
		return nil, err
	}
	reads := []cache.SharedIndexInformer{
		claims, volumes, storage.StorageClasses().Informer(), storage.VolumeAttributesClasses().Informer(),
		core.Nodes().Informer(), storage.CSINodes().Informer(),
	}
	deletes := []controller.Watch{{Informer: volumes, Keys: p.ownVolumes, Changed: volumeChanged}}
	if p.publishes {
		if err := p.IndexAttachments(); err != nil {
			return nil, err
		}
		// A deletion may have waited for the last attachment to go.
		deletes = append(deletes, controller.Watch{Informer: storage.VolumeAttachments().Informer(), Keys: p.VolumeKeys, Changed: session.Unchanged})
	}
	// Both loops have volumes' names as keys and exclude each other: nothing makes a volume while it is deleted.
	var exclusion controller.Exclusion
	return []controller.Loop{
		{Name: "provision", Watches: []controller.Watch{{Informer: claims, Keys: p.claimKeys, Changed: claimChanged}}, Reads: reads,
			Reconcile: p.reconcileClaim, Workers: session.Ahead * p.Workers, Retry: p.Retry, RetryMax: p.RetryMax, Exclusion: &exclusion},
		{Name: "delete", Watches: deletes, Reads: reads,
			Reconcile: p.reconcileVolume, Workers: session.Ahead * p.Workers, Retry: p.Retry, RetryMax: p.RetryMax, Exclusion: &exclusion},
		{Name: "clone-source", Watches: []controller.Watch{{Informer: claims, Keys: sourceKeys, Changed: sourceChanged}},
			Reconcile: p.reconcileSource, Retry: p.Retry, RetryMax: p.RetryMax},
	}, nil
}

// volumeName is what the volume for a claim is called, as PersistentVolume and in CreateVolume: the same in each try.
func volumeName(claim *corev1.PersistentVolumeClaim) string { return "pvc-" + string(claim.UID) }

func claimVolume(object any) []string {
	claim, ok := object.(*corev1.PersistentVolumeClaim)
	if !ok {
		return nil
	}
	return []string{volumeName(claim)}
}

// claimKeys are the volumes of claims that name this driver.
func (p *provisioner) claimKeys(object any) []controller.Key {
	claim, ok := object.(*corev1.PersistentVolumeClaim)
	if !ok || provisionerOf(claim) != p.name {
		return nil
	}
	return []controller.Key{{Name: volumeName(claim)}}
}

// ownVolumes are the PersistentVolumes that this driver was asked to make.
func (p *provisioner) ownVolumes(object any) []controller.Key {
	pv, ok := object.(*corev1.PersistentVolume)
	if !ok || !p.own(pv) {
		return nil
	}
	return []controller.Key{{Name: pv.Name}}
}

// own tells whether the volume of a PersistentVolume was made by this driver, or by the in-tree plug-in before it.
func (p *provisioner) own(pv *corev1.PersistentVolume) bool {
	by := pv.Annotations[provisionedBy]
	if by == "" || by != p.name && by != p.InTree() {
		return false
	}
	own, err := p.Own(pv)
	return err == nil && own != nil
}

// claimChanged and volumeChanged leave out what the loops write themselves.
func claimChanged(old, new any) bool {
	a, b := old.(*corev1.PersistentVolumeClaim), new.(*corev1.PersistentVolumeClaim)
	return a.UID != b.UID || a.DeletionTimestamp.IsZero() != b.DeletionTimestamp.IsZero() || a.Spec.VolumeName != b.Spec.VolumeName ||
		selectedNode(a) != selectedNode(b) || provisionerOf(a) != provisionerOf(b)
}

func volumeChanged(old, new any) bool {
	a, b := old.(*corev1.PersistentVolume), new.(*corev1.PersistentVolume)
	return a.UID != b.UID || a.DeletionTimestamp.IsZero() != b.DeletionTimestamp.IsZero() || a.Status.Phase != b.Status.Phase ||
		a.Spec.PersistentVolumeReclaimPolicy != b.Spec.PersistentVolumeReclaimPolicy
}
