package kube

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	csitranslation "k8s.io/csi-translation-lib"
	"k8s.io/klog/v2"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	cmoptions "k8s.io/kubernetes/cmd/kube-controller-manager/app/options"
	"k8s.io/kubernetes/pkg/controller/volume/expand"
	"k8s.io/kubernetes/pkg/volume"
	"k8s.io/kubernetes/pkg/volume/csimigration"

	"github.com/slipway-platform/slipway/controller"
)

// Expander is the component that expands volumes when their claims request more storage. It
// replaces upstream's expand controller, which passes no prober to its FlexVolume plugins, and
// therefore marks every FlexVolume as expanded without calling its driver. It delegates the claims
// of all other volumes to an instance of upstream's controller.
//
// The API server decides whether a claim can grow: the PersistentVolumeClaimResize admission plugin
// requires a StorageClass with allowVolumeExpansion, even for PersistentVolumes that an
// administrator creates. These volumes and their claims must specify a class, even if the class
// does not provision volumes.
type Expander struct {
	// Deps provides the shared clients and caches.
	Deps *controller.Deps
	// Prober reports added and removed FlexVolume drivers.
	Prober volume.DynamicPluginProber
	// KubeletRoot is the kubelet's root directory. Paths below it are passed to drivers as the
	// mount paths of devices.
	KubeletRoot string
}

// Name returns the component's name.
func (e *Expander) Name() string { return "expander" }

// Run expands volumes until ctx is done.
func (e *Expander) Run(ctx context.Context, ready func()) error {
	client, core := e.Deps.Kube, e.Deps.Informers.Core().V1()
	claims, volumes := core.PersistentVolumeClaims(), core.PersistentVolumes()
	volumes.Informer()
	controller, err := otherVolumes(ctx, client, claims, volumes.Lister())
	if err != nil {
		return err
	}
	expansion, err := newFlexExpansion(ctx, client, claims, volumes.Lister(), e.Prober, e.KubeletRoot)
	if err != nil {
		return err
	}
	e.Deps.Start()
	e.Deps.Informers.WaitForCacheSync(ctx.Done())
	ready()
	var group sync.WaitGroup
	group.Go(func() { controller.Run(ctx) })
	group.Go(func() { expansion.run(ctx) })
	group.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("run expander: it stopped unexpectedly")
}

// otherVolumes returns an instance of upstream's expand controller for the claims of all volumes
// except FlexVolumes.
func otherVolumes(ctx context.Context, client kubernetes.Interface, claims coreinformers.PersistentVolumeClaimInformer,
	volumes corelisters.PersistentVolumeLister) (expand.ExpandController, error) {
	defaults, err := cmoptions.NewKubeControllerManagerOptions()
	if err != nil {
		return nil, fmt.Errorf("set up expander: %w", err)
	}
	plugins, err := controllermanager.ProbeExpandableVolumePlugins(klog.FromContext(ctx),
		defaults.PersistentVolumeBinderController.VolumeConfiguration)
	if err != nil {
		return nil, fmt.Errorf("load volume plugins: %w", err)
	}
	translator := csitranslation.New()
	controller, err := expand.NewExpandController(ctx, client, otherClaims{claims, volumes}, plugins,
		translator, csimigration.NewPluginManager(translator))
	if err != nil {
		return nil, fmt.Errorf("set up expander: %w", err)
	}
	return controller, nil
}

// otherClaims hides claims that are bound to FlexVolumes: its lister does not find them by name.
type otherClaims struct {
	coreinformers.PersistentVolumeClaimInformer
	volumes corelisters.PersistentVolumeLister
}

// Lister returns a lister that hides FlexVolume claims.
func (c otherClaims) Lister() corelisters.PersistentVolumeClaimLister {
	return otherLister{c.PersistentVolumeClaimInformer.Lister(), c.volumes}
}

type otherLister struct {
	corelisters.PersistentVolumeClaimLister
	volumes corelisters.PersistentVolumeLister
}

// PersistentVolumeClaims returns a lister for one namespace.
func (l otherLister) PersistentVolumeClaims(namespace string) corelisters.PersistentVolumeClaimNamespaceLister {
	return otherNamespaceLister{l.PersistentVolumeClaimLister.PersistentVolumeClaims(namespace), l.volumes}
}

type otherNamespaceLister struct {
	corelisters.PersistentVolumeClaimNamespaceLister
	volumes corelisters.PersistentVolumeLister
}

// Get returns a claim. If the claim's volume is not in the cache yet, Get fails, and upstream
// retries.
func (l otherNamespaceLister) Get(name string) (*corev1.PersistentVolumeClaim, error) {
	claim, err := l.PersistentVolumeClaimNamespaceLister.Get(name)
	if err != nil {
		return nil, err
	}
	pv, err := l.volumes.Get(claim.Spec.VolumeName)
	if err != nil {
		// The error is not wrapped, because upstream would not retry a NotFound error.
		return nil, fmt.Errorf("find volume of claim %s/%s: %s", claim.Namespace, name, err.Error())
	}
	if pv.Spec.FlexVolume != nil {
		return nil, apierrors.NewNotFound(corev1.Resource("persistentvolumeclaims"), name)
	}
	return claim, nil
}
