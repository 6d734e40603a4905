package kube

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	cmoptions "k8s.io/kubernetes/cmd/kube-controller-manager/app/options"
	"k8s.io/kubernetes/pkg/controller/volume/attachdetach"
	"k8s.io/kubernetes/pkg/volume"
)

// AttachDetach is upstream's attach-detach controller with our volume plugins. The controller
// manager would build it with the in-tree FlexVolume prober; run by itself it takes any prober.
type AttachDetach struct {
	// Client is the connection and identity of the controller.
	Client *rest.Config
	// Prober finds FlexVolume drivers as they come and go.
	Prober volume.DynamicPluginProber
}

// Name is the part's name.
func (a *AttachDetach) Name() string { return "attach-detach" }

// Run attaches and detaches until ctx ends.
func (a *AttachDetach) Run(ctx context.Context, ready func()) error {
	client, err := kubernetes.NewForConfig(a.Client)
	if err != nil {
		return fmt.Errorf("connect attach-detach controller: %w", err)
	}
	defaults, err := cmoptions.NewKubeControllerManagerOptions()
	if err != nil {
		return fmt.Errorf("set up attach-detach controller: %w", err)
	}
	plugins, err := controllermanager.ProbeAttachableVolumePlugins(klog.FromContext(ctx),
		defaults.PersistentVolumeBinderController.VolumeConfiguration)
	if err != nil {
		return fmt.Errorf("load volume plug-ins: %w", err)
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	core, storage := factory.Core().V1(), factory.Storage().V1()
	reconcile := defaults.AttachDetachController
	controller, err := attachdetach.NewAttachDetachController(ctx, client,
		core.Pods(), core.Nodes(), core.PersistentVolumeClaims(), core.PersistentVolumes(),
		storage.CSINodes(), storage.CSIDrivers(), storage.VolumeAttachments(),
		plugins, a.Prober,
		reconcile.DisableAttachDetachReconcilerSync, reconcile.ReconcilerSyncLoopPeriod.Duration,
		reconcile.DisableForceDetachOnTimeout, timers())
	if err != nil {
		return fmt.Errorf("set up attach-detach controller: %w", err)
	}
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	factory.WaitForCacheSync(ctx.Done())
	ready()
	controller.Run(ctx)
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("run attach-detach controller: it stopped by itself")
}

// timers are upstream's but for two. A pod whose driver was not installed yet when it was scheduled is
// found again only by a walk over all pods, which upstream does every three minutes; the walk reads
// memory alone, so it can follow a driver's installation within seconds.
func timers() attachdetach.TimerConfig {
	config := attachdetach.DefaultTimerConfig
	config.DesiredStateOfWorldPopulatorLoopSleepPeriod = 2 * time.Second
	config.DesiredStateOfWorldPopulatorListPodsRetryDuration = 2 * time.Second
	return config
}
