// Package scheduler turns OpenShift 3's scheduler Policy into a KubeSchedulerConfiguration, and
// contains the plugins for predicates and priorities that upstream removed with the Policy.
package scheduler

import (
	"fmt"

	componentconfig "k8s.io/component-base/config/v1alpha1"
	configv1 "k8s.io/kube-scheduler/config/v1"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/kube/scheduler/policy"
)

// Settings holds an administrator's scheduler settings.
type Settings struct {
	// Policy replaces the default predicates and priorities, if it is not nil.
	Policy *policy.Policy
	// Configuration is a KubeSchedulerConfiguration in YAML or JSON. Configuration and Policy are
	// mutually exclusive.
	Configuration []byte
	// DisablePreemption means that pods do not evict pods with a lower priority.
	DisablePreemption bool
}

// Configuration is the initial configuration of upstream's scheduler.
type Configuration struct {
	// YAML is a KubeSchedulerConfiguration.
	YAML []byte
	// Plugins holds the plugins that YAML refers to but that upstream lacks.
	Plugins frameworkruntime.Registry
}

// Build returns a scheduler's configuration. connection specifies how the scheduler connects to the
// API server. A KubeSchedulerConfiguration can override the connection's rate limits.
func (s *Settings) Build(connection componentconfig.ClientConnectionConfiguration) (*Configuration, error) {
	scheduler := &configv1.KubeSchedulerConfiguration{ClientConnection: connection}
	plugins := frameworkruntime.Registry{}
	switch {
	case s.Policy != nil:
		translated := translate(s.Policy)
		scheduler.Profiles = []configv1.KubeSchedulerProfile{*translated.profile(s.Policy)}
		scheduler.Extenders = extenders(s.Policy.Extenders)
		plugins = translated.registry
	case len(s.Configuration) > 0:
		if err := yaml.UnmarshalStrict(s.Configuration, scheduler); err != nil {
			return nil, fmt.Errorf("parse KubeSchedulerConfiguration: %w", err)
		}
	}
	scheduler.APIVersion, scheduler.Kind = configv1.SchemeGroupVersion.String(), "KubeSchedulerConfiguration"
	if s.DisablePreemption {
		disablePreemption(scheduler)
	}
	sort(scheduler)
	plugins[newPodsFirstName] = newNewPodsFirst
	adapt(scheduler, connection.Kubeconfig)
	text, err := yaml.Marshal(scheduler)
	if err != nil {
		return nil, fmt.Errorf("write KubeSchedulerConfiguration: %w", err)
	}
	return &Configuration{YAML: text, Plugins: plugins}, nil
}

// adapt adjusts the configuration to this control plane: there is only one scheduler, and it does
// not listen on any port. Profiling is disabled because it would set the block profile rate of the
// whole process.
func adapt(scheduler *configv1.KubeSchedulerConfiguration, kubeconfig string) {
	off := false
	scheduler.ClientConnection.Kubeconfig = kubeconfig
	scheduler.LeaderElection.LeaderElect = &off
	scheduler.EnableProfiling, scheduler.EnableContentionProfiling = &off, &off
}

// preemption is the name of upstream's plugin that evicts pods.
const preemption = "DefaultPreemption"

func disablePreemption(scheduler *configv1.KubeSchedulerConfiguration) {
	for _, plugins := range profilePlugins(scheduler) {
		plugins.MultiPoint.Disabled = append(plugins.MultiPoint.Disabled, configv1.Plugin{Name: preemption})
	}
}
