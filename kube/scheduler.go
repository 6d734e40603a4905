package kube

import (
	"context"
	"fmt"

	"k8s.io/component-base/configz"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"

	"github.com/slipway-platform/slipway/internal/arguments"
)

// Scheduler is the component that runs upstream's scheduler. It listens on no port: the API
// server's /metrics, which share the registry, contain its metrics.
type Scheduler struct {
	// Kubeconfig is the path of the scheduler's kubeconfig.
	Kubeconfig string
	// Arguments are the administrator's flags (kubernetesMasterConfig.schedulerArguments).
	Arguments arguments.Map
}

// Name returns the component's name.
func (s *Scheduler) Name() string { return "scheduler" }

// Run schedules pods until ctx ends.
func (s *Scheduler) Run(ctx context.Context, ready func()) error {
	opts := options.NewOptions()
	opts.SecureServing.BindPort = 0
	settings := arguments.Map{
		"kubeconfig":   {s.Kubeconfig},
		"leader-elect": {"false"},
		"profiling":    {"false"},
		// It is on by default, and sets the block profile rate of the whole process.
		"contention-profiling": {"false"},
	}
	if err := apply(settings, "scheduler", *opts.Flags); err != nil {
		return err
	}
	if err := apply(s.Arguments, "kubernetesMasterConfig.schedulerArguments", *opts.Flags); err != nil {
		return err
	}
	config, scheduler, err := app.Setup(ctx, opts)
	if err != nil {
		return fmt.Errorf("set up scheduler: %w", err)
	}
	defer configz.Delete("componentconfig")
	ready()
	err = app.Run(ctx, config, scheduler)
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("run scheduler: %w", err)
}
