package kube

import (
	"context"
	"fmt"

	"k8s.io/component-base/configz"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"

	"github.com/slipway-platform/slipway/internal/arguments"
)

// Scheduler is upstream's scheduler as a part of this process. It serves no port of its own: its
// metrics are on the API server's /metrics, with which it shares the registry.
type Scheduler struct {
	// Kubeconfig is the path of the scheduler's client identity.
	Kubeconfig string
	// Arguments are the administrator's flags (kubernetesMasterConfig.schedulerArguments).
	Arguments arguments.Map
}

// Name is the part's name.
func (s *Scheduler) Name() string { return "scheduler" }

// Run schedules until ctx ends.
func (s *Scheduler) Run(ctx context.Context, ready func()) error {
	opts := options.NewOptions()
	opts.SecureServing.BindPort = 0
	settings := arguments.Map{
		"kubeconfig":   {s.Kubeconfig},
		"leader-elect": {"false"},
		"profiling":    {"false"},
		// On by default, and then it sets the block profile rate of the whole process.
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
