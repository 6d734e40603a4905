package kube

import (
	"context"
	"fmt"
	"time"

	"k8s.io/klog/v2"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	cmoptions "k8s.io/kubernetes/cmd/kube-controller-manager/app/options"
	"k8s.io/kubernetes/pkg/controller/volume/attachdetach"
	"k8s.io/kubernetes/pkg/volume"

	"github.com/slipway-platform/slipway/controller"
)

// AttachDetach is the component that runs upstream's attach-detach controller with Slipway's volume
// plugins. The controller manager always uses the in-tree FlexVolume prober. Outside the controller
// manager, the attach-detach controller accepts any prober.
type AttachDetach struct {
	// Deps provides the shared clients and caches.
	Deps *controller.Deps
	// Prober reports added and removed FlexVolume drivers.
	Prober volume.DynamicPluginProber
}

// Name returns the component's name.
func (a *AttachDetach) Name() string { return "attach-detach" }

// Run attaches and detaches volumes until ctx is done.
func (a *AttachDetach) Run(ctx context.Context, ready func()) error {
	defaults, err := cmoptions.NewKubeControllerManagerOptions()
	if err != nil {
		return fmt.Errorf("set up attach-detach controller: %w", err)
	}
	plugins, err := controllermanager.ProbeAttachableVolumePlugins(klog.FromContext(ctx),
		defaults.PersistentVolumeBinderController.VolumeConfiguration)
	if err != nil {
		return fmt.Errorf("load volume plugins: %w", err)
	}
	core, storage := a.Deps.Informers.Core().V1(), a.Deps.Informers.Storage().V1()
	reconcile := defaults.AttachDetachController
	controller, err := attachdetach.NewAttachDetachController(ctx, a.Deps.Kube,
		core.Pods(), core.Nodes(), core.PersistentVolumeClaims(), core.PersistentVolumes(),
		storage.CSINodes(), storage.CSIDrivers(), storage.VolumeAttachments(),
		plugins, a.Prober,
		reconcile.DisableAttachDetachReconcilerSync, reconcile.ReconcilerSyncLoopPeriod.Duration,
		reconcile.DisableForceDetachOnTimeout, timers())
	if err != nil {
		return fmt.Errorf("set up attach-detach controller: %w", err)
	}
	a.Deps.Start()
	a.Deps.Informers.WaitForCacheSync(ctx.Done())
	ready()
	controller.Run(ctx)
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("run attach-detach controller: it stopped unexpectedly")
}

// timers returns upstream's timers, with shorter intervals for the periodic pass over all pods. If
// a pod's driver was not installed when the pod was scheduled, only this pass finds the pod again.
// Upstream runs the pass every three minutes. The pass reads only memory, so a short interval is
// cheap.
func timers() attachdetach.TimerConfig {
	config := attachdetach.DefaultTimerConfig
	config.DesiredStateOfWorldPopulatorLoopSleepPeriod = 2 * time.Second
	config.DesiredStateOfWorldPopulatorListPodsRetryDuration = 2 * time.Second
	return config
}
