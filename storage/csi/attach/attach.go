// Package attach attaches and detaches a CSI driver's volumes according to VolumeAttachments
// (document "CSI Volume Plugins in Kubernetes", Attaching and Detaching). The package sends three
// requests to the API server to attach and detach a volume. The first request adds the finalizer
// and the node's ID to the VolumeAttachment. The second request writes the result to the status.
// The third request removes the finalizer. After the last detach, the PersistentVolume keeps its
// finalizer for a while, because most volumes are soon attached to another node. The provisioner
// creates PersistentVolumes with this finalizer.
package attach

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/slipway-platform/slipway/controller"
	"github.com/slipway-platform/slipway/storage/csi/driver"
	"github.com/slipway-platform/slipway/storage/csi/session"
)

// Options configures the attach and detach controllers.
type Options struct {
	// Workers limits the number of concurrent attach calls. The same limit applies separately to
	// detach calls. The default is 10.
	Workers int
	// FinalizerDelay is how long a detached PersistentVolume keeps its finalizer. The default is 5
	// minutes. If the PersistentVolume is being deleted, the finalizer is removed immediately.
	FinalizerDelay time.Duration
	// VerifyInterval is the interval at which attachments are compared with the driver's state. The
	// default is 1 minute.
	VerifyInterval time.Duration
	// Retry is the backoff after the first error. The backoff doubles after each further error, up
	// to RetryMax. The defaults are 1 second and 5 minutes.
	Retry, RetryMax time.Duration
}

// Finalizer returns the finalizer for the driver's VolumeAttachments and PersistentVolumes. It is
// the external-attacher's finalizer, so that objects created by the external-attacher continue to
// work.
func Finalizer(driverName string) string {
	return "external-attacher/" + driver.SanitizeName(driverName)
}

// nodeIDAnnotation is the VolumeAttachment annotation that contains the node's ID. The ID is
// recorded because the node might no longer exist when the volume is detached.
const nodeIDAnnotation = "csi.alpha.kubernetes.io/node-id"

// attacher attaches one driver's volumes.
type attacher struct {
	*session.Session
	Options
	name, finalizer string
	canPublish      bool
	attachments     storagelisters.VolumeAttachmentLister
	volumes         corelisters.PersistentVolumeLister
	nodes           corelisters.NodeLister
	csiNodes        storagelisters.CSINodeLister

	attachSlots, detachSlots session.Slots
	protection               protection
	reattach                 reattachSet
	attachQueue              controller.Trigger
}

// Feature returns a driver's controllers. For a driver without PUBLISH_UNPUBLISH_VOLUME, the
// controllers mark VolumeAttachments as attached without calling the driver, because the kubelet
// waits for this status.
func Feature(options Options) session.Feature {
	return func(s *session.Session) ([]controller.Controller, error) {
		if s.Node != "" {
			return nil, nil // volumes of a driver for a single node need no attachment
		}
		if options.Workers == 0 {
			options.Workers = 10
		}
		if options.FinalizerDelay == 0 {
			options.FinalizerDelay = 5 * time.Minute
		}
		if options.VerifyInterval == 0 {
			options.VerifyInterval = time.Minute
		}
		storage, core := s.Informers.Storage().V1(), s.Informers.Core().V1()
		a := &attacher{
			Session: s, Options: options, name: s.Description.Name, finalizer: Finalizer(s.Description.Name),
			canPublish:  s.Description.Can(csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME),
			attachments: storage.VolumeAttachments().Lister(),
			volumes:     core.PersistentVolumes().Lister(),
			nodes:       core.Nodes().Lister(),
			csiNodes:    storage.CSINodes().Lister(),
			attachSlots: make(session.Slots, options.Workers),
			detachSlots: make(session.Slots, options.Workers),
		}
		return a.controllers()
	}
}

func (a *attacher) controllers() ([]controller.Controller, error) {
	storage, core := a.Informers.Storage().V1(), a.Informers.Core().V1()
	attachments := storage.VolumeAttachments().Informer()
	if err := a.IndexAttachments(); err != nil {
		return nil, err
	}
	reads := []cache.SharedIndexInformer{core.PersistentVolumes().Informer(), core.Nodes().Informer(), storage.CSINodes().Informer()}
	watches := []controller.Watch{{Informer: attachments, Keys: a.keys, Changed: changed}}
	var exclusion controller.Exclusion
	// Attach and detach have separate queues and workers, so that a burst of detachments does not
	// delay attachments.
	loops := []controller.Controller{
		{Name: "attach", Watches: watches, Reads: reads, Reconcile: a.reconcileAttach, Workers: session.WorkersPerSlot * a.Workers, MinBackoff: a.Retry, MaxBackoff: a.RetryMax, Exclusion: &exclusion, Trigger: &a.attachQueue},
		{Name: "detach", Watches: watches, Reads: reads, Reconcile: a.reconcileDetach, Workers: session.WorkersPerSlot * a.Workers, MinBackoff: a.Retry, MaxBackoff: a.RetryMax, Exclusion: &exclusion},
		{Name: "protect", Watches: []controller.Watch{
			{Informer: core.PersistentVolumes().Informer(), Keys: a.protectedKeys, Changed: protectionChanged},
			{Informer: attachments, Keys: a.VolumeKeys, Changed: session.IgnoreUpdates},
		}, Reconcile: a.reconcileProtection, MinBackoff: a.Retry, MaxBackoff: a.RetryMax},
	}
	if verify := a.verifier(); verify != nil {
		loops = append(loops, controller.Controller{
			Name: "verify", Watches: []controller.Watch{{Informer: attachments, Keys: a.verifyKey, Changed: session.IgnoreUpdates}},
			Reads: reads, Reconcile: verify.reconcile, Workers: 1,
		})
	}
	return loops, nil
}

// keys returns the key of a VolumeAttachment if it belongs to this driver.
func (a *attacher) keys(object any) []controller.Key {
	va, ok := object.(*storagev1.VolumeAttachment)
	if !ok || va.Spec.Attacher != a.name {
		return nil
	}
	return []controller.Key{{Name: va.Name}}
}

// changed reports whether an update to a VolumeAttachment requires reconciliation. It ignores the
// controllers' own writes, because an error in the status must not cause an early retry.
func changed(old, new any) bool {
	before, after := old.(*storagev1.VolumeAttachment), new.(*storagev1.VolumeAttachment)
	return before.UID != after.UID || before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() || before.Status.Attached && !after.Status.Attached
}

// acquire waits for a slot for a driver call. Then it confirms that this process is the leader,
// because it might have been paused since it read the VolumeAttachment.
func (a *attacher) acquire(ctx context.Context, slots session.Slots) (release func(), err error) {
	release, err = slots.Acquire(ctx)
	if err != nil || a.Confirm == nil {
		return release, err
	}
	if err := a.Confirm(ctx); err != nil {
		release()
		return nil, err
	}
	return release, nil
}

func (a *attacher) hasFinalizer(finalizers []string) bool {
	return slices.Contains(finalizers, a.finalizer)
}

// reattachSet holds the attachments that must be attached again although their status reports them
// as attached.
type reattachSet struct {
	mu    sync.Mutex
	names map[string]bool
}

func (f *reattachSet) add(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.names == nil {
		f.names = map[string]bool{}
	}
	f.names[name] = true
}

// remove removes an attachment from the set and reports whether the set contained it.
func (f *reattachSet) remove(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	defer delete(f.names, name)
	return f.names[name]
}

// isOwnVolume reports whether the PersistentVolume belongs to the driver. It returns false for a
// PersistentVolume that cannot be translated, because the attempt to attach it reports the error.
func (a *attacher) isOwnVolume(pv *corev1.PersistentVolume) bool {
	translated, err := a.OwnVolume(pv)
	return err == nil && translated != nil
}
