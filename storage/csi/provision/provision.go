// Package provision creates and deletes a CSI driver's volumes for claims (document "CSI Volume
// Plugins in Kubernetes", Provisioning and Deleting).
//
// Volumes are never leaked. Before CreateVolume is called, a finalizer on the claim records that a
// volume might exist. The finalizer is removed when a PersistentVolume exists for the volume, or
// when it is certain that no volume exists. If the claim is deleted in the meantime, the finalizer
// keeps the claim, even if the process is killed. The provisioner then calls CreateVolume again
// with the same name, which is derived from the claim's UID, and deletes the volume.
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

// Options configures provisioning.
type Options struct {
	// Workers is the maximum number of concurrent CreateVolume calls, and also of concurrent
	// DeleteVolume calls. The default is 100 for each.
	Workers int
	// FSType is the file system type of volumes whose StorageClass does not set it. If FSType is
	// empty, the driver chooses the file system type.
	FSType string
	// ExtraMetadata adds the names of the claim and the PersistentVolume to the CreateVolume
	// parameters.
	ExtraMetadata bool
	// Strict restricts the topology requirement to the selected node's segment.
	Strict bool
	// NoSpread disables spreading a StatefulSet's volumes across the topology.
	NoSpread bool
	// Retry is the backoff after the first error. The backoff doubles after each further error, up
	// to RetryMax. The defaults are 1 second and 5 minutes.
	Retry, RetryMax time.Duration
}

const (
	// pendingFinalizer marks a claim that might have a volume without a PersistentVolume.
	pendingFinalizer = "csi.slipway.io/provisioning"
	// volumeFinalizer protects a PersistentVolume until its volume is deleted. The
	// external-provisioner uses the same finalizer, so volumes that it has created continue to
	// work.
	volumeFinalizer = "external-provisioner.volume.kubernetes.io/finalizer"
	// provisionedByAnnotation on a PersistentVolume contains the name of its provisioner.
	provisionedByAnnotation = "pv.kubernetes.io/provisioned-by"
	// byVolumeName is the index of claims by volume name.
	byVolumeName = "volumeName"
)

// provisioner creates and deletes one driver's volumes.
type provisioner struct {
	*session.Session
	Options
	name       string
	canPublish bool
	topology   bool
	dynamic    dynamic.Interface
	claims     cache.Indexer
	claimsByNS corelisters.PersistentVolumeClaimLister
	volumes    corelisters.PersistentVolumeLister
	classes    storagelisters.StorageClassLister
	attributes storagelisters.VolumeAttributesClassLister
	nodes      corelisters.NodeLister

	createSlots, deleteSlots session.Slots
	deleted                  deletedSet
}

// Feature returns the controllers for a driver that supports CREATE_DELETE_VOLUME.
func Feature(options Options) session.Feature {
	return func(s *session.Session) ([]controller.Controller, error) {
		if !s.Description.Can(csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME) {
			return nil, nil
		}
		if options.Workers == 0 {
			options.Workers = 100
		}
		core, storage := s.Informers.Core().V1(), s.Informers.Storage().V1()
		p := &provisioner{
			Session: s, Options: options, name: s.Description.Name,
			canPublish:  s.Description.Can(csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME) && s.Node == "",
			topology:    s.Description.HasService(csi.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS),
			claims:      core.PersistentVolumeClaims().Informer().GetIndexer(),
			claimsByNS:  core.PersistentVolumeClaims().Lister(),
			volumes:     core.PersistentVolumes().Lister(),
			classes:     storage.StorageClasses().Lister(),
			attributes:  storage.VolumeAttributesClasses().Lister(),
			nodes:       core.Nodes().Lister(),
			createSlots: make(session.Slots, options.Workers),
			deleteSlots: make(session.Slots, options.Workers),
		}
		if s.Node != "" && !p.topology {
			return nil, errors.New("provision for one node: the driver has no topology (VOLUME_ACCESSIBILITY_CONSTRAINTS), so its volumes have no node")
		}
		if s.Config != nil {
			client, err := dynamic.NewForConfig(s.Config)
			if err != nil {
				return nil, err
			}
			p.dynamic = client
		}
		return p.controllers()
	}
}

func (p *provisioner) controllers() ([]controller.Controller, error) {
	core, storage := p.Informers.Core().V1(), p.Informers.Storage().V1()
	claims, volumes := core.PersistentVolumeClaims().Informer(), core.PersistentVolumes().Informer()
	if err := p.Index(claims, byVolumeName, claimVolume); err != nil {
		return nil, err
	}
	reads := []cache.SharedIndexInformer{
		claims, volumes, storage.StorageClasses().Informer(), storage.VolumeAttributesClasses().Informer(),
		core.Nodes().Informer(), storage.CSINodes().Informer(),
	}
	deletes := []controller.Watch{{Informer: volumes, Keys: p.ownVolumes, Changed: volumeChanged}}
	if p.canPublish {
		if err := p.IndexAttachments(); err != nil {
			return nil, err
		}
		// Watch attachments, because a deletion might be waiting until the last attachment is
		// removed.
		deletes = append(deletes, controller.Watch{Informer: storage.VolumeAttachments().Informer(), Keys: p.VolumeKeys, Changed: session.IgnoreUpdates})
	}
	// Both controllers use volume names as keys and never process the same key concurrently, so a
	// volume is never created while it is being deleted.
	var exclusion controller.Exclusion
	return []controller.Controller{
		{Name: "provision", Watches: []controller.Watch{{Informer: claims, Keys: p.claimKeys, Changed: claimChanged}}, Reads: reads,
			Reconcile: p.reconcileClaim, Workers: session.WorkersPerSlot * p.Workers, MinBackoff: p.Retry, MaxBackoff: p.RetryMax, Exclusion: &exclusion},
		{Name: "delete", Watches: deletes, Reads: reads,
			Reconcile: p.reconcileVolume, Workers: session.WorkersPerSlot * p.Workers, MinBackoff: p.Retry, MaxBackoff: p.RetryMax, Exclusion: &exclusion},
		{Name: "clone-source", Watches: []controller.Watch{{Informer: claims, Keys: sourceKeys, Changed: sourceChanged}},
			Reconcile: p.reconcileSource, MinBackoff: p.Retry, MaxBackoff: p.RetryMax},
	}, nil
}

// volumeName returns the name of the claim's volume, both for the PersistentVolume and for
// CreateVolume. It is the same in each attempt.
func volumeName(claim *corev1.PersistentVolumeClaim) string { return "pvc-" + string(claim.UID) }

func claimVolume(object any) []string {
	claim, ok := object.(*corev1.PersistentVolumeClaim)
	if !ok {
		return nil
	}
	return []string{volumeName(claim)}
}

// claimKeys returns the keys of the volumes for claims with this provisioner.
func (p *provisioner) claimKeys(object any) []controller.Key {
	claim, ok := object.(*corev1.PersistentVolumeClaim)
	if !ok || provisionerOf(claim) != p.name {
		return nil
	}
	return []controller.Key{{Name: volumeName(claim)}}
}

// ownVolumes returns the key of a PersistentVolume if this provisioner created it.
func (p *provisioner) ownVolumes(object any) []controller.Key {
	pv, ok := object.(*corev1.PersistentVolume)
	if !ok || !p.isOwn(pv) {
		return nil
	}
	return []controller.Key{{Name: pv.Name}}
}

// isOwn reports whether this driver, or the in-tree plugin that it replaces, provisioned the
// PersistentVolume.
func (p *provisioner) isOwn(pv *corev1.PersistentVolume) bool {
	provisioner := pv.Annotations[provisionedByAnnotation]
	if provisioner == "" || provisioner != p.name && provisioner != p.InTreePlugin() {
		return false
	}
	translated, err := p.OwnVolume(pv)
	return err == nil && translated != nil
}

// claimChanged and volumeChanged report whether an update requires reconciliation. They ignore the
// controllers' own writes.
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
