package scheduler

import (
	"encoding/json"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	configv1 "k8s.io/kube-scheduler/config/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"github.com/slipway-platform/slipway/kube/scheduler/policy"
)

// translation represents a Policy as plugins of upstream's scheduler.
type translation struct {
	// filters lists the upstream plugins that exclude nodes.
	filters map[string]bool
	// scores maps the upstream plugins that score nodes to their weights.
	scores map[string]int64
	// registry holds the plugins that upstream lacks. added holds their names and weights.
	registry frameworkruntime.Registry
	added    []configv1.Plugin
}

// translate translates a Policy's rules. Rules that are newer than the Policy format still apply:
// the pods' topology spread constraints, dynamic resources and scheduling gates. The rules on
// taints, unschedulable nodes and volume binding also still apply. Without volume binding, pods
// with local volumes would wait forever.
func translate(p *policy.Policy) *translation {
	t := &translation{
		filters: map[string]bool{
			names.TaintToleration: true, names.NodeUnschedulable: true, names.VolumeBinding: true, names.PodTopologySpread: true,
		},
		scores:   map[string]int64{names.VolumeBinding: 1, names.PodTopologySpread: 1},
		registry: frameworkruntime.Registry{},
	}
	t.predicates(p)
	priorities := p.Priorities
	if priorities == nil {
		priorities = policy.DefaultPriorities()
	}
	for _, priority := range priorities {
		upstream, ok := upstreamPriorities()[priority.Name]
		switch {
		case !ok || priority.Argument != nil:
			t.add("priorities."+priority.Name, priorityPlugin(&priority), priority.Weight)
		case upstream != "":
			t.scores[upstream] = priority.Weight
		}
	}
	return t
}

func (t *translation) predicates(p *policy.Policy) {
	if p.Predicates == nil {
		for _, plugins := range predicates() {
			setAll(t.filters, plugins)
		}
	}
	for _, predicate := range p.Predicates {
		if predicate.Argument == nil {
			setAll(t.filters, predicates()[predicate.Name])
			continue
		}
		t.add("predicates."+predicate.Name, predicatePlugin(predicate.Argument), 0)
	}
	if p.AlwaysCheckAllPredicates {
		t.combine()
	}
}

// add adds a plugin that upstream lacks.
func (t *translation) add(name string, plugin namedFactory, score int64) {
	t.registry[name] = plugin(name)
	t.added = append(t.added, configv1.Plugin{Name: name, Weight: weight(score)})
}

// combine moves all predicates into one plugin, which runs all of them. VolumeBinding stays a
// separate plugin, because it also reserves volumes.
func (t *translation) combine() {
	combined, registry := slices.Sorted(maps.Keys(t.registry)), t.registry
	for _, name := range slices.Sorted(maps.Keys(t.filters)) {
		if name != names.VolumeBinding {
			combined = append(combined, name)
			delete(t.filters, name)
		}
	}
	t.registry, t.added = frameworkruntime.Registry{}, nil
	t.add("predicates", newAllPredicates(combined, registry), 0)
}

// profile returns the scheduler profile that enables the rules.
func (t *translation) profile(p *policy.Policy) *configv1.KubeSchedulerProfile {
	profile := &configv1.KubeSchedulerProfile{
		Plugins: &configv1.Plugins{},
		PluginConfig: []configv1.PluginConfig{
			// Disable the default topology spread constraints, because SelectorSpreadPriority
			// replaces them.
			pluginArgs(names.PodTopologySpread, map[string]any{"defaultingType": "List"}),
		},
	}
	if hard := p.HardPodAffinitySymmetricWeight; hard != 0 {
		profile.PluginConfig = append(profile.PluginConfig, pluginArgs(names.InterPodAffinity, map[string]any{"hardPodAffinityWeight": hard}))
	}
	t.enable(profile.Plugins)
	profile.Plugins.MultiPoint.Enabled = append(profile.Plugins.MultiPoint.Enabled, t.added...)
	return profile
}

// enable enables each upstream plugin that the policy uses for filtering, scoring or both. A plugin
// that has only one of these roles is disabled for the other role.
func (t *translation) enable(plugins *configv1.Plugins) {
	for _, name := range governed() {
		plugin := configv1.Plugin{Name: name}
		scored, filtered := t.scores[name] != 0, t.filters[name]
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
		plugins.MultiPoint.Enabled = append(plugins.MultiPoint.Enabled, configv1.Plugin{Name: name, Weight: weight(t.scores[name])})
	}
}

// governed returns the upstream plugins that a Policy enables or disables, sorted by name.
func governed() []string {
	plugins := map[string]bool{names.PodTopologySpread: true}
	for _, filters := range predicates() {
		setAll(plugins, filters)
	}
	for _, score := range upstreamPriorities() {
		if score != "" {
			plugins[score] = true
		}
	}
	return slices.Sorted(maps.Keys(plugins))
}

func setAll(set map[string]bool, keys []string) {
	for _, key := range keys {
		set[key] = true
	}
}

// weight returns a pointer to the value, or nil if the value is 0.
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
		panic(err) // strings and numbers can be encoded
	}
	return configv1.PluginConfig{Name: name, Args: runtime.RawExtension{Raw: raw}}
}
