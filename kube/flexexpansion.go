package kube

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
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

// A failed expansion is tried again after firstExpandRetry, then after twice the time, and so on to lastExpandRetry.
const (
	firstExpandRetry = time.Second
	lastExpandRetry  = 5 * time.Minute
)

// flexExpansion expands FlexVolumes with their drivers. What it writes (conditions, allocated resources, events, annotations) upstream's
// own operation writes, so kubelet and people find what they know from any other volume. That operation keeps its progress
// in the claim's status and may be repeated after a crash at any point; the driver may then be called again with the same sizes.
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
			workqueue.NewTypedItemExponentialFailureRateLimiter[string](firstExpandRetry, lastExpandRetry)),
	}
	if err := x.plugins.InitPlugins(nil, prober, expansionHost{client: client, root: kubeletRoot}); err != nil {
		return nil, fmt.Errorf("load FlexVolume drivers: %w", err)
	}
	x.recorder = x.events.NewRecorder(scheme.Scheme, v1.EventSource{Component: "volume_expand"})
	x.operation = operationexecutor.NewOperationGenerator(client, x.plugins, x.recorder, volumepathhandler.NewBlockVolumePathHandler())
	_, err := claims.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: x.notice,
		UpdateFunc: func(before, after any) {
			if grew(before, after) {
				x.notice(after)
			}
		},
	})
	if err != nil {
		return nil, fmt.Errorf("watch claims: %w", err)
	}
	return x, nil
}

// grew says whether a claim asks for more than before, or has got more, which is when something is to be done. Other changes, most of them our own,
// would only bring states that the cache has not caught up with.
func grew(before, after any) bool {
	old, isClaim := before.(*v1.PersistentVolumeClaim)
	claim, isToo := after.(*v1.PersistentVolumeClaim)
	return isClaim && isToo && (claim.Spec.Resources.Requests.Storage().Cmp(*old.Spec.Resources.Requests.Storage()) > 0 ||
		claim.Status.Capacity.Storage().Cmp(*old.Status.Capacity.Storage()) > 0)
}

// notice puts a bound claim into the queue if its volume is, or may be, a FlexVolume.
func (x *flexExpansion) notice(object any) {
	claim, ok := object.(*v1.PersistentVolumeClaim)
	if !ok || claim.Status.Phase != v1.ClaimBound {
		return
	}
	pv, err := x.volumes.Get(claim.Spec.VolumeName)
	if err != nil || pv.Spec.FlexVolume != nil {
		x.queue.Add(cache.MetaObjectToName(claim).String())
	}
}

// run expands until ctx ends. Every claim has a goroutine of its own while it is worked on: a driver that hangs delays only its own
// volumes, and how many calls of one driver run at a time is bounded by the driver's settings.
func (x *flexExpansion) run(ctx context.Context) {
	x.events.StartRecordingToSink(&typedcore.EventSinkImpl{Interface: x.client.CoreV1().Events("")})
	defer x.events.Shutdown()
	stop := context.AfterFunc(ctx, x.queue.ShutDown)
	defer stop()
	var work sync.WaitGroup
	for {
		key, ended := x.queue.Get()
		if ended {
			break
		}
		work.Go(func() {
			defer x.queue.Done(key)
			if err := x.expand(ctx, key); err != nil && ctx.Err() == nil {
				slog.Warn("expand FlexVolume", "claim", key, "error", err)
				x.queue.AddRateLimited(key)
				return
			}
			x.queue.Forget(key)
		})
	}
	// A call of a driver has no context of ours; the end of the process ends it, and the next start repeats it.
	finished := make(chan struct{})
	go func() { work.Wait(); close(finished) }()
	select {
	case <-finished:
	case <-time.After(time.Second):
	}
}

// expand brings one claim, "namespace/name", a step further.
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
	// Not from the cache, because the volume's size and annotation were written by the step before.
	pv, err := x.client.CoreV1().PersistentVolumes().Get(ctx, claim.Spec.VolumeName, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read volume of claim: %w", err)
	}
	if pv.Spec.FlexVolume == nil {
		return nil
	}
	if ref := pv.Spec.ClaimRef; ref == nil || ref.UID != claim.UID {
		return fmt.Errorf("read volume of claim: volume %q is not bound to it", pv.Name)
	}
	grown := metav1.HasAnnotation(pv.ObjectMeta, util.AnnPreResizeCapacity)
	switch {
	case grown && expanded(claim, pv):
		return util.DeleteAnnPreResizeCapacity(pv, x.client)
	case !grown && claim.Spec.Resources.Requests.Storage().Cmp(*claim.Status.Capacity.Storage()) <= 0:
		return nil
	}
	return x.call(claim, pv)
}

// call runs upstream's operation with the driver.
func (x *flexExpansion) call(claim *v1.PersistentVolumeClaim, pv *v1.PersistentVolume) error {
	driver := pv.Spec.FlexVolume.Driver
	// Without a plugin, upstream takes a FlexVolume for one that needs nothing.
	if _, err := x.plugins.FindExpandablePluginByName(driver); err != nil {
		err := fmt.Errorf("find FlexVolume driver %q: it is not installed, or its init has not succeeded", driver)
		x.recorder.Event(claim, v1.EventTypeWarning, events.VolumeResizeFailed, err.Error())
		return err
	}
	operation, err := x.operation.GenerateExpandAndRecoverVolumeFunc(claim, pv, driver)
	if err != nil {
		return err
	}
	_, err = operation.Run()
	return err
}

// expanded says whether the node has done its part: the claim has what it asks for and what the volume has.
func expanded(claim *v1.PersistentVolumeClaim, pv *v1.PersistentVolume) bool {
	has := claim.Status.Capacity.Storage()
	return has.Cmp(*claim.Spec.Resources.Requests.Storage()) >= 0 && has.Cmp(*pv.Spec.Capacity.Storage()) >= 0
}

// expansionHost is the little of a volume host that the expansion of a FlexVolume uses.
type expansionHost struct {
	volume.VolumeHost // nil: the rest is kubelet's
	client            kubernetes.Interface
	root              string
}

// GetPluginDir is where kubelet keeps the mounts of a plugin.
func (h expansionHost) GetPluginDir(plugin string) string {
	return filepath.Join(h.root, "plugins", plugin)
}

// GetKubeClient is the connection to the API server.
func (h expansionHost) GetKubeClient() kubernetes.Interface { return h.client }
