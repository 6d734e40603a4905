package kube

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"sync"

	componentconfig "k8s.io/component-base/config/v1alpha1"
	"k8s.io/component-base/configz"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/config"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	upstreamscheduler "k8s.io/kubernetes/pkg/scheduler"

	"github.com/slipway-platform/slipway/internal/arguments"
	"github.com/slipway-platform/slipway/internal/atomicfile"
	"github.com/slipway-platform/slipway/kube/scheduler"
)

// Scheduler is the component that runs upstream's scheduler. It does not listen on any port. Its
// metrics are in the shared registry, which the API server's /metrics endpoint serves.
type Scheduler struct {
	// Kubeconfig is the path of the scheduler's kubeconfig.
	Kubeconfig string
	// File is the path where the component writes the KubeSchedulerConfiguration in effect.
	File string
	// Settings holds the administrator's settings.
	Settings SchedulerSettings
	// ConfigMap, if set, specifies the ConfigMap that contains the policy.
	ConfigMap *SchedulerConfigMap

	note func(string)

	mu sync.Mutex
	// base holds the settings from the configuration files. mapped holds the settings from the
	// ConfigMap.
	base   SchedulerSettings
	mapped scheduler.Settings
	// restart stops the running scheduler, so that another scheduler starts with the changed
	// settings.
	restart context.CancelFunc
}

// SchedulerSettings holds the administrator's scheduler settings.
type SchedulerSettings struct {
	scheduler.Settings
	// Arguments are flags (kubernetesMasterConfig.schedulerArguments).
	Arguments arguments.Map
}

// Name returns the component's name.
func (s *Scheduler) Name() string { return "scheduler" }

// Prepare checks settings. apply makes the scheduler use them. Pods wait while the scheduler
// restarts.
func (s *Scheduler) Prepare(settings SchedulerSettings) (apply func(), err error) {
	s.mu.Lock()
	base := settings // settings in the files
	if s.ConfigMap != nil {
		settings.Policy, settings.Configuration = s.mapped.Policy, s.mapped.Configuration
	}
	unchanged := reflect.DeepEqual(settings, s.Settings)
	s.mu.Unlock()
	if unchanged {
		return func() {}, nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	candidate := s.File + ".candidate"
	defer os.Remove(candidate)
	if _, _, err := s.setUp(ctx, settings, candidate); err != nil {
		return nil, err
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.Settings, s.base = settings, base
		if s.restart != nil {
			s.restart()
		}
	}, nil
}

// Run schedules pods until ctx is done.
func (s *Scheduler) Run(ctx context.Context, ready func()) error {
	started := make(chan struct{})
	begin := sync.OnceFunc(func() { ready(); close(started) })
	if s.ConfigMap != nil {
		s.base = s.Settings
		following, cancel := context.WithCancel(ctx)
		synced, done := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			s.followConfigMap(following, synced, started)
		}()
		defer func() { cancel(); <-done }()
		select {
		case <-synced:
		case <-ctx.Done():
			return nil
		}
	}
	for ctx.Err() == nil {
		if err := s.runOnce(ctx, begin); err != nil {
			return err
		}
	}
	return nil
}

// runOnce schedules pods until ctx is done or the settings change.
func (s *Scheduler) runOnce(ctx context.Context, ready func()) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.mu.Lock()
	s.restart = cancel
	settings := s.Settings
	s.mu.Unlock()

	config, upstream, err := s.setUp(ctx, settings, s.File)
	if err != nil {
		return err
	}
	defer configz.Delete("componentconfig")
	ready()
	err = app.Run(ctx, config, upstream)
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("run scheduler: %w", err)
}

// setUp writes the scheduler's configuration to a file and creates the scheduler.
func (s *Scheduler) setUp(ctx context.Context, settings SchedulerSettings, file string) (*config.CompletedConfig, *upstreamscheduler.Scheduler, error) {
	opts := options.NewOptions()
	if err := apply(settings.Arguments, "kubernetesMasterConfig.schedulerArguments", *opts.Flags); err != nil {
		return nil, nil, err
	}
	opts.SecureServing.BindPort = 0
	opts.ConfigFile = file
	// Pass the connection flags as settings, because upstream ignores them if a configuration file
	// is used.
	built, err := settings.Build(componentconfig.ClientConnectionConfiguration{
		Kubeconfig: s.Kubeconfig, ContentType: opts.Deprecated.ContentType, QPS: opts.Deprecated.QPS, Burst: opts.Deprecated.Burst,
	})
	if err != nil {
		return nil, nil, err
	}
	if err := atomicfile.Write(file, built.YAML, 0o600); err != nil {
		return nil, nil, fmt.Errorf("write scheduler configuration: %w", err)
	}
	var plugins []app.Option
	for name, factory := range built.Plugins {
		plugins = append(plugins, app.WithPlugin(name, factory))
	}
	completed, upstream, err := app.Setup(ctx, opts, plugins...)
	if err != nil {
		return nil, nil, fmt.Errorf("set up scheduler: %w", err)
	}
	return completed, upstream, nil
}
