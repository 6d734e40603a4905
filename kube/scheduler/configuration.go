// Package scheduler turns OpenShift 3's scheduler Policy into a KubeSchedulerConfiguration, and
// contains the plugins for predicates and priorities that upstream removed with the Policy.
package scheduler

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	componentconfig "k8s.io/component-base/config/v1alpha1"
	configv1 "k8s.io/kube-scheduler/config/v1"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/kube/scheduler/policy"
)

// Settings are what an administrator decides about the scheduler.
type Settings struct {
	// Policy replaces the default predicates and priorities, if it is not nil.
	Policy *policy.Policy
	// Configuration is a KubeSchedulerConfiguration in YAML or JSON. It and Policy exclude each other.
	Configuration []byte
	// DisablePreemption keeps pods from evicting pods with a lower priority.
	DisablePreemption bool
}

// Configuration is what upstream's scheduler starts with.
type Configuration struct {
	// YAML is a KubeSchedulerConfiguration.
	YAML []byte
	// Plugins are the plugins in YAML that upstream does not contain.
	Plugins frameworkruntime.Registry
}

// Build returns the configuration of a scheduler. connection is how it reaches the API server; a
// KubeSchedulerConfiguration can override its limits.
func (s *Settings) Build(connection componentconfig.ClientConnectionConfiguration) (*Configuration, error) {
	scheduler := &configv1.KubeSchedulerConfiguration{ClientConnection: connection}
	plugins := frameworkruntime.Registry{}
	switch {
	case s.Policy != nil:
		profile, registry := translate(s.Policy)
		scheduler.Profiles = []configv1.KubeSchedulerProfile{*profile}
		scheduler.Extenders = extenders(s.Policy.Extenders)
		plugins = registry
	case len(s.Configuration) > 0:
		if err := yaml.UnmarshalStrict(s.Configuration, scheduler); err != nil {
			return nil, fmt.Errorf("read KubeSchedulerConfiguration: %w", err)
		}
	}
	scheduler.APIVersion, scheduler.Kind = configv1.SchemeGroupVersion.String(), "KubeSchedulerConfiguration"
	if s.DisablePreemption {
		disablePreemption(scheduler)
	}
	adapt(scheduler, connection.Kubeconfig)
	text, err := yaml.Marshal(scheduler)
	if err != nil {
		return nil, fmt.Errorf("write KubeSchedulerConfiguration: %w", err)
	}
	return &Configuration{YAML: text, Plugins: plugins}, nil
}

// adapt sets what follows from the place of the scheduler in the control plane: there is one
// scheduler, and it serves no port. Profiling sets the block profile rate of the whole process.
func adapt(scheduler *configv1.KubeSchedulerConfiguration, kubeconfig string) {
	off := false
	scheduler.ClientConnection.Kubeconfig = kubeconfig
	scheduler.LeaderElection.LeaderElect = &off
	scheduler.EnableProfiling, scheduler.EnableContentionProfiling = &off, &off
}

// preemption is upstream's plugin that evicts pods.
const preemption = "DefaultPreemption"

func disablePreemption(scheduler *configv1.KubeSchedulerConfiguration) {
	if len(scheduler.Profiles) == 0 {
		scheduler.Profiles = []configv1.KubeSchedulerProfile{{}}
	}
	for i := range scheduler.Profiles {
		profile := &scheduler.Profiles[i]
		if profile.Plugins == nil {
			profile.Plugins = &configv1.Plugins{}
		}
		profile.Plugins.MultiPoint.Disabled = append(profile.Plugins.MultiPoint.Disabled, configv1.Plugin{Name: preemption})
	}
}

// translate returns the profile with the rules of a Policy, and the plugins that upstream does not
// contain. Rules that are newer than the Policy stay in force: topology spread constraints of pods,
// dynamic resources and scheduling gates. So do taints, unschedulable nodes and the binding of
// volumes, without which pods with local volumes would wait forever.
func translate(p *policy.Policy) (*configv1.KubeSchedulerProfile, frameworkruntime.Registry) {
	registry := frameworkruntime.Registry{}
	filters := map[string]bool{"TaintToleration": true, "NodeUnschedulable": true, "VolumeBinding": true, "PodTopologySpread": true}
	scores := map[string]int64{"VolumeBinding": 1, "PodTopologySpread": 1}
	var additions []configv1.Plugin
	if p.Predicates == nil {
		for _, plugins := range predicates() {
			setAll(filters, plugins)
		}
	}
	for _, predicate := range p.Predicates {
		if predicate.Argument == nil {
			setAll(filters, predicates()[predicate.Name])
			continue
		}
		name := "predicates." + predicate.Name
		registry[name] = predicatePlugin(name, predicate.Argument)
		additions = append(additions, configv1.Plugin{Name: name})
	}
	priorities := p.Priorities
	if priorities == nil {
		priorities = policy.DefaultPriorities()
	}
	for _, priority := range priorities {
		if upstream, ok := upstreamPriorities()[priority.Name]; ok && priority.Argument == nil {
			if upstream != "" {
				scores[upstream] = priority.Weight
			}
			continue
		}
		name := "priorities." + priority.Name
		registry[name] = priorityPlugin(name, &priority)
		additions = append(additions, configv1.Plugin{Name: name, Weight: weight(priority.Weight)})
	}
	profile := &configv1.KubeSchedulerProfile{
		Plugins: &configv1.Plugins{},
		PluginConfig: []configv1.PluginConfig{
			// SelectorSpreadPriority takes the place of the default constraints.
			pluginArgs("PodTopologySpread", map[string]any{"defaultingType": "List"}),
		},
	}
	if hard := p.HardPodAffinitySymmetricWeight; hard != 0 {
		profile.PluginConfig = append(profile.PluginConfig, pluginArgs("InterPodAffinity", map[string]any{"hardPodAffinityWeight": hard}))
	}
	enable(profile.Plugins, filters, scores)
	profile.Plugins.MultiPoint.Enabled = append(profile.Plugins.MultiPoint.Enabled, additions...)
	return profile, registry
}

// enable sets the roles of upstream's plugins. A plugin with one role is disabled for the other.
func enable(plugins *configv1.Plugins, filters map[string]bool, scores map[string]int64) {
	for _, name := range governed() {
		plugin := configv1.Plugin{Name: name}
		scored, filtered := scores[name] != 0, filters[name]
		if !scored && !filtered {
			plugins.MultiPoint.Disabled = append(plugins.MultiPoint.Disabled, plugin)
			continue
		}
		if !scored {
			plugins.PreScore.Disabled = append(plugins.PreScore.Disabled, plugin)
			plugins.Score.Disabled = append(plugins.Score.Disabled, plugin)
		}
		if !filtered {
			plugins.PreFilter.Disabled = append(plugins.PreFilter.Disabled, plugin)
			plugins.Filter.Disabled = append(plugins.Filter.Disabled, plugin)
		}
		plugins.MultiPoint.Enabled = append(plugins.MultiPoint.Enabled, configv1.Plugin{Name: name, Weight: weight(scores[name])})
	}
}

// governed returns the plugins of upstream that a Policy enables or disables, sorted.
func governed() []string {
	names := map[string]bool{"PodTopologySpread": true}
	for _, plugins := range predicates() {
		setAll(names, plugins)
	}
	for _, plugin := range upstreamPriorities() {
		if plugin != "" {
			names[plugin] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

func setAll(set map[string]bool, names []string) {
	for _, name := range names {
		set[name] = true
	}
}

// weight returns nil for 0.
func weight(value int64) *int32 {
	if value == 0 {
		return nil
	}
	number := int32(value)
	return &number
}

func pluginArgs(name string, args map[string]any) configv1.PluginConfig {
	args["apiVersion"], args["kind"] = configv1.SchemeGroupVersion.String(), name+"Args"
	raw, err := json.Marshal(args)
	if err != nil {
		panic(err) // strings and numbers only
	}
	return configv1.PluginConfig{Name: name, Args: runtime.RawExtension{Raw: raw}}
}
