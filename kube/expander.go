package kube

import (
	"context"
	"fmt"
	"sync"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	coreinformers "k8s.io/client-go/informers/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	csitrans "k8s.io/csi-translation-lib"
	"k8s.io/klog/v2"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	cmoptions "k8s.io/kubernetes/cmd/kube-controller-manager/app/options"
	"k8s.io/kubernetes/pkg/controller/volume/expand"
	"k8s.io/kubernetes/pkg/volume"
	"k8s.io/kubernetes/pkg/volume/csimigration"
)

// Expander makes volumes larger when their claims ask for more. It takes the place of upstream's expand controller, which gives its
// FlexVolume plugins no prober and therefore notes every FlexVolume as expanded without calling its driver. Claims of all other volumes
// are left to an instance of upstream's.
//
// Whether a claim may grow is not decided here: the API server admits it only for a claim whose StorageClass exists and has
// allowVolumeExpansion (admission plugin PersistentVolumeClaimResize), for PersistentVolumes made by hand too. Such a volume and its claim name
// a class that need not provision anything.
type Expander struct {
	// Client is the connection and identity of the controller.
	Client *rest.Config
	// Prober finds FlexVolume drivers as they come and go.
	Prober volume.DynamicPluginProber
	// KubeletRoot is kubelet's root directory, below which drivers are told that their volume's device is mounted.
	KubeletRoot string
}

// Name is the part's name.
func (e *Expander) Name() string { return "expander" }

// Run expands until ctx ends.
func (e *Expander) Run(ctx context.Context, ready func()) error {
	client, err := kubernetes.NewForConfig(e.Client)
	if err != nil {
		return fmt.Errorf("connect expander: %w", err)
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	claims, volumes := factory.Core().V1().PersistentVolumeClaims(), factory.Core().V1().PersistentVolumes()
	volumes.Informer()
	others, err := otherVolumes(ctx, client, claims, volumes.Lister())
	if err != nil {
		return err
	}
	ours, err := newFlexExpansion(ctx, client, claims, volumes.Lister(), e.Prober, e.KubeletRoot)
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	factory.WaitForCacheSync(ctx.Done())
	ready()
	var group sync.WaitGroup
	group.Go(func() { others.Run(ctx) })
	group.Go(func() { ours.run(ctx) })
	group.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("run expander: it stopped by itself")
}

// otherVolumes is upstream's expand controller for claims of everything but FlexVolumes.
func otherVolumes(ctx context.Context, client kubernetes.Interface, claims coreinformers.PersistentVolumeClaimInformer,
	volumes corelisters.PersistentVolumeLister) (expand.ExpandController, error) {
	defaults, err := cmoptions.NewKubeControllerManagerOptions()
	if err != nil {
		return nil, fmt.Errorf("set up expander: %w", err)
	}
	plugins, err := controllermanager.ProbeExpandableVolumePlugins(klog.FromContext(ctx),
		defaults.PersistentVolumeBinderController.VolumeConfiguration)
	if err != nil {
		return nil, fmt.Errorf("load volume plug-ins: %w", err)
	}
	translator := csitrans.New()
	controller, err := expand.NewExpandController(ctx, client, otherClaims{claims, volumes}, plugins,
		translator, csimigration.NewPluginManager(translator))
	if err != nil {
		return nil, fmt.Errorf("set up expander: %w", err)
	}
	return controller, nil
}

// otherClaims are the claims of volumes that are no FlexVolumes; the others do not exist for who looks for one by its name.
type otherClaims struct {
	coreinformers.PersistentVolumeClaimInformer
	volumes corelisters.PersistentVolumeLister
}

// Lister looks for claims by name.
func (c otherClaims) Lister() corelisters.PersistentVolumeClaimLister {
	return otherLister{c.PersistentVolumeClaimInformer.Lister(), c.volumes}
}

type otherLister struct {
	corelisters.PersistentVolumeClaimLister
	volumes corelisters.PersistentVolumeLister
}

// PersistentVolumeClaims looks in one namespace.
func (l otherLister) PersistentVolumeClaims(namespace string) corelisters.PersistentVolumeClaimNamespaceLister {
	return otherNamespaceLister{l.PersistentVolumeClaimLister.PersistentVolumeClaims(namespace), l.volumes}
}

type otherNamespaceLister struct {
	corelisters.PersistentVolumeClaimNamespaceLister
	volumes corelisters.PersistentVolumeLister
}

// Get is the claim of that name. Where its volume is not known yet there is an error, after which upstream asks again.
func (l otherNamespaceLister) Get(name string) (*v1.PersistentVolumeClaim, error) {
	claim, err := l.PersistentVolumeClaimNamespaceLister.Get(name)
	if err != nil {
		return nil, err
	}
	pv, err := l.volumes.Get(claim.Spec.VolumeName)
	if err != nil {
		return nil, fmt.Errorf("find volume of claim %s/%s: %v", claim.Namespace, name, err) // not found is no answer here
	}
	if pv.Spec.FlexVolume != nil {
		return nil, apierrors.NewNotFound(v1.Resource("persistentvolumeclaims"), name)
	}
	return claim, nil
}
