package kube

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/kubernetes/pkg/kubelet/events"
	"k8s.io/kubernetes/pkg/volume"
	"k8s.io/kubernetes/pkg/volume/util"
	"k8s.io/kubernetes/pkg/volume/util/operationexecutor"
	"k8s.io/kubernetes/pkg/volume/util/volumepathhandler"
)

// A failed expansion is retried after minExpandBackoff. The backoff doubles up to maxExpandBackoff.
const (
	minExpandBackoff = time.Second
	maxExpandBackoff = 5 * time.Minute
)

// flexExpansion expands FlexVolumes by calling their drivers. Upstream's own operation writes
// conditions, allocated resources, events and annotations, so the kubelet and users observe the
// same behavior as with any other volume. The operation stores its progress in the claim's status,
// and can be repeated after a crash at any point. In that case, it can call the driver again with
// the same sizes.
type flexExpansion struct {
	client    kubernetes.Interface
	claims    corelisters.PersistentVolumeClaimLister
	volumes   corelisters.PersistentVolumeLister
	plugins   *volume.VolumePluginMgr
	operation operationexecutor.OperationGenerator
	events    record.EventBroadcaster
	recorder  record.EventRecorder
	queue     workqueue.TypedRateLimitingInterface[string]
}

func newFlexExpansion(ctx context.Context, client kubernetes.Interface, claims coreinformers.PersistentVolumeClaimInformer,
	volumes corelisters.PersistentVolumeLister, prober volume.DynamicPluginProber, kubeletRoot string) (*flexExpansion, error) {
	x := &flexExpansion{
		client: client, claims: claims.Lister(), volumes: volumes, plugins: &volume.VolumePluginMgr{},
		events: record.NewBroadcaster(record.WithContext(ctx)),
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[string](minExpandBackoff, maxExpandBackoff)),
	}
	if err := x.plugins.InitPlugins(nil, prober, expansionHost{client: client, root: kubeletRoot}); err != nil {
		return nil, fmt.Errorf("load FlexVolume drivers: %w", err)
	}
	x.recorder = x.events.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "volume_expand"})
	x.operation = operationexecutor.NewOperationGenerator(client, x.plugins, x.recorder, volumepathhandler.NewBlockVolumePathHandler())
	_, err := claims.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: x.enqueue,
		UpdateFunc: func(old, updated any) {
			if grew(old, updated) {
				x.enqueue(updated)
			}
		},
	})
	if err != nil {
		return nil, fmt.Errorf("watch claims: %w", err)
	}
	return x, nil
}

// grew reports whether a claim's requested storage or capacity has increased. Other changes are
// ignored; the controller itself makes most of them.
func grew(before, after any) bool {
	oldClaim, ok := before.(*corev1.PersistentVolumeClaim)
	if !ok {
		return false
	}
	claim, ok := after.(*corev1.PersistentVolumeClaim)
	return ok && (claim.Spec.Resources.Requests.Storage().Cmp(*oldClaim.Spec.Resources.Requests.Storage()) > 0 ||
		claim.Status.Capacity.Storage().Cmp(*oldClaim.Status.Capacity.Storage()) > 0)
}

// enqueue adds a bound claim to the queue if its volume is a FlexVolume or is not in the cache.
func (x *flexExpansion) enqueue(object any) {
	claim, ok := object.(*corev1.PersistentVolumeClaim)
	if !ok || claim.Status.Phase != corev1.ClaimBound {
		return
	}
	pv, err := x.volumes.Get(claim.Spec.VolumeName)
	if err != nil || pv.Spec.FlexVolume != nil {
		x.queue.Add(cache.MetaObjectToName(claim).String())
	}
}

// run expands volumes until ctx is done. Each active claim has its own goroutine, so a hanging
// driver delays only its own volumes. The driver's settings limit the number of concurrent calls to
// the driver.
func (x *flexExpansion) run(ctx context.Context) {
	x.events.StartRecordingToSink(&coreclient.EventSinkImpl{Interface: x.client.CoreV1().Events("")})
	defer x.events.Shutdown()
	stop := context.AfterFunc(ctx, x.queue.ShutDown)
	defer stop()
	var work sync.WaitGroup
	for {
		key, shutdown := x.queue.Get()
		if shutdown {
			break
		}
		work.Go(func() {
			defer x.queue.Done(key)
			if err := x.expand(ctx, key); err != nil && ctx.Err() == nil {
				slog.Warn("cannot expand FlexVolume", "claim", key, "error", err)
				x.queue.AddRateLimited(key)
				return
			}
			x.queue.Forget(key)
		})
	}
	// Driver calls do not use ctx, so wait for them only briefly. They are terminated with the
	// process and repeated after the next start.
	done := make(chan struct{})
	go func() { work.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(time.Second):
	}
}

// expand performs the next step for one claim. key has the form "namespace/name".
func (x *flexExpansion) expand(ctx context.Context, key string) error {
	name, err := cache.ParseObjectName(key)
	if err != nil {
		return err
	}
	claim, err := x.claims.PersistentVolumeClaims(name.Namespace).Get(name.Name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	// Do not read from the cache, because the previous step has just written the volume's size and
	// annotation.
	pv, err := x.client.CoreV1().PersistentVolumes().Get(ctx, claim.Spec.VolumeName, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read claim volume: %w", err)
	}
	if pv.Spec.FlexVolume == nil {
		return nil
	}
	if ref := pv.Spec.ClaimRef; ref == nil || ref.UID != claim.UID {
		return fmt.Errorf("read claim volume: volume %q is not bound to it", pv.Name)
	}
	resized := metav1.HasAnnotation(pv.ObjectMeta, util.AnnPreResizeCapacity)
	switch {
	case resized && expanded(claim, pv):
		return util.DeleteAnnPreResizeCapacity(pv, x.client)
	case !resized && claim.Spec.Resources.Requests.Storage().Cmp(*claim.Status.Capacity.Storage()) <= 0:
		return nil
	}
	return x.call(claim, pv)
}

// call runs upstream's operation with the volume's driver.
func (x *flexExpansion) call(claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) error {
	driver := pv.Spec.FlexVolume.Driver
	// Return an error if there is no plugin. Upstream would treat the FlexVolume as a volume that
	// needs no expansion.
	if _, err := x.plugins.FindExpandablePluginByName(driver); err != nil {
		err = x.unavailable(pv)
		x.recorder.Event(claim, corev1.EventTypeWarning, events.VolumeResizeFailed, err.Error())
		return err
	}
	operation, err := x.operation.GenerateExpandAndRecoverVolumeFunc(claim, pv, driver)
	if err != nil {
		return err
	}
	_, err = operation.Run()
	return err
}

// unavailable returns an error that explains why a volume's driver cannot be used.
func (x *flexExpansion) unavailable(pv *corev1.PersistentVolume) error {
	spec := volume.NewSpecFromPersistentVolume(pv, false)
	plugin, err := x.plugins.FindPluginBySpec(spec)
	if err == nil {
		_, err = plugin.GetVolumeName(spec) // if the driver is unusable, its plugin returns the reason
	}
	if err == nil {
		err = fmt.Errorf("find FlexVolume driver %q: its init has just succeeded; the expansion is retried", pv.Spec.FlexVolume.Driver)
	}
	return fmt.Errorf("the expansion waits for the driver: %w", err)
}

// expanded reports whether the node has expanded the file system. It has done so if the claim's
// capacity has reached both the requested size and the volume's size.
func expanded(claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) bool {
	capacity := claim.Status.Capacity.Storage()
	return capacity.Cmp(*claim.Spec.Resources.Requests.Storage()) >= 0 && capacity.Cmp(*pv.Spec.Capacity.Storage()) >= 0
}

// expansionHost implements the part of a volume host that FlexVolume expansion uses.
type expansionHost struct {
	volume.VolumeHost // nil, because only the kubelet uses the other methods
	client            kubernetes.Interface
	root              string
}

// GetPluginDir returns the kubelet directory for a plugin's mounts.
func (h expansionHost) GetPluginDir(plugin string) string {
	return filepath.Join(h.root, "plugins", plugin)
}

// GetNodeName returns "", because the expansion does not run on a node.
func (h expansionHost) GetNodeName() types.NodeName { return "" }

// GetKubeClient returns the client for the API server.
func (h expansionHost) GetKubeClient() kubernetes.Interface { return h.client }
