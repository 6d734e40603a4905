// Package attach attaches and detaches volumes of a CSI driver as VolumeAttachments ask for it (document "CSI Volume Plugins in Kubernetes",
// Attaching and Detaching). A volume's life costs three requests: the finalizer and the node's ID go onto the VolumeAttachment together, the
// result into its status, and the removal of the finalizer lets it go. The finalizer of the PersistentVolume lingers after the last detach, since
// most volumes are soon attached elsewhere; the provisioner makes volumes with it.
package attach

import (
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

// Options are what an administrator may choose.
type Options struct {
	// Workers is how many attachments, and how many detachments, the driver is asked for at once; 0 means 10 each.
	Workers int
	// Linger is how long a PersistentVolume that is attached nowhere keeps its finalizer; 0 means 5 minutes. One that is being deleted loses it at once.
	Linger time.Duration
	// Verify is how often attachments are compared with what the driver knows; 0 means a minute.
	Verify time.Duration
	// Retry is the delay after the first error, which doubles up to RetryMax; 0 means 1 second and 5 minutes.
	Retry, RetryMax time.Duration
}

// Finalizer is what holds VolumeAttachments and PersistentVolumes of a driver. It is that of the external attacher, whose objects are taken over.
func Finalizer(driverName string) string { return "external-attacher/" + driver.Sanitized(driverName) }

// nodeIDAnnotation keeps the node's ID on a VolumeAttachment: the node may be gone when the volume is detached.
const nodeIDAnnotation = "csi.alpha.kubernetes.io/node-id"

// attacher attaches for one driver.
type attacher struct {
	*session.Session
	Options
	name, finalizer string
	publishes       bool
	attachments     storagelisters.VolumeAttachmentLister
	volumes         corelisters.PersistentVolumeLister
	nodes           corelisters.NodeLister
	csiNodes        storagelisters.CSINodeLister

	attaches, detaches session.Places
	protection         protection
	forced             forced
	attach             controller.Calls
}

// Feature makes the loops of a driver. One that cannot publish volumes gets a loop that marks VolumeAttachments attached: Kubernetes does not know
// that there is nothing to do.
func Feature(options Options) session.Feature {
	return func(s *session.Session) ([]controller.Loop, error) {
		if s.Node != "" {
			return nil, nil // the driver serves one node; what it publishes is there already
		}
		if options.Workers == 0 {
			options.Workers = 10
		}
		if options.Linger == 0 {
			options.Linger = 5 * time.Minute
		}
		if options.Verify == 0 {
			options.Verify = time.Minute
		}
		storage, core := s.Informers.Storage().V1(), s.Informers.Core().V1()
		a := &attacher{
			Session: s, Options: options, name: s.Description.Name, finalizer: Finalizer(s.Description.Name),
			publishes:   s.Description.Can(csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME),
			attachments: storage.VolumeAttachments().Lister(),
			volumes:     core.PersistentVolumes().Lister(),
			nodes:       core.Nodes().Lister(),
			csiNodes:    storage.CSINodes().Lister(),
			attaches:    make(session.Places, options.Workers),
			detaches:    make(session.Places, options.Workers),
		}
		return a.loops()
	}
}

func (a *attacher) loops() ([]controller.Loop, error) {
	storage, core := a.Informers.Storage().V1(), a.Informers.Core().V1()
	attachments := storage.VolumeAttachments().Informer()
	if err := a.IndexAttachments(); err != nil {
		return nil, err
	}
	reads := []cache.SharedIndexInformer{core.PersistentVolumes().Informer(), core.Nodes().Informer(), storage.CSINodes().Informer()}
	own := []controller.Watch{{Informer: attachments, Keys: a.keys, Changed: changed}}
	var exclusion controller.Exclusion
	// A burst of detachments must not hold up attachments: each has its own queue and workers.
	loops := []controller.Loop{
		{Name: "attach", Watches: own, Reads: reads, Reconcile: a.reconcileAttach, Workers: session.Ahead * a.Workers, Retry: a.Retry, RetryMax: a.RetryMax, Exclusion: &exclusion, Calls: &a.attach},
		{Name: "detach", Watches: own, Reads: reads, Reconcile: a.reconcileDetach, Workers: session.Ahead * a.Workers, Retry: a.Retry, RetryMax: a.RetryMax, Exclusion: &exclusion},
		{Name: "protect", Watches: []controller.Watch{
			{Informer: core.PersistentVolumes().Informer(), Keys: a.protectedKeys, Changed: protectionChanged},
			{Informer: attachments, Keys: a.VolumeKeys, Changed: session.Unchanged},
		}, Reconcile: a.reconcileProtection, Retry: a.Retry, RetryMax: a.RetryMax},
	}
	if verify := a.verifier(); verify != nil {
		loops = append(loops, controller.Loop{
			Name: "verify", Watches: []controller.Watch{{Informer: attachments, Keys: a.verifyKey, Changed: session.Unchanged}},
			Reads: reads, Reconcile: verify.reconcile, Workers: 1,
		})
	}
	return loops, nil
}

// keys are the attachments of this driver.
func (a *attacher) keys(object any) []controller.Key {
	va, ok := object.(*storagev1.VolumeAttachment)
	if !ok || va.Spec.Attacher != a.name {
		return nil
	}
	return []controller.Key{{Name: va.Name}}
}

// changed leaves out what the loops write themselves; an error in the status must not cause another try before its time.
func changed(old, new any) bool {
	before, after := old.(*storagev1.VolumeAttachment), new.(*storagev1.VolumeAttachment)
	return before.UID != after.UID || before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() || before.Status.Attached && !after.Status.Attached
}

func (a *attacher) held(finalizers []string) bool { return slices.Contains(finalizers, a.finalizer) }

// forced are attachments that are attached again though their status says that they are.
type forced struct {
	mu  sync.Mutex
	set map[string]bool
}

func (f *forced) add(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.set == nil {
		f.set = map[string]bool{}
	}
	f.set[name] = true
}

// take tells whether the attachment is forced, once.
func (f *forced) take(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	defer delete(f.set, name)
	return f.set[name]
}

// ownVolume tells whether the PersistentVolume belongs to the driver. One that cannot be understood is left to attaching, which tells why.
func (a *attacher) ownVolume(pv *corev1.PersistentVolume) bool {
	own, err := a.Own(pv)
	return err == nil && own != nil
}
