package scheduler

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

// allPredicates implements alwaysCheckAllPredicates: it runs all predicates on a node and reports
// the reasons from all predicates that exclude the node. Upstream stops at the first predicate that
// excludes the node.
type allPredicates struct {
	name    string
	plugins []framework.Plugin
}

// newAllPredicates returns a plugin that runs the named upstream plugins and the plugins in a
// registry.
func newAllPredicates(names []string, registry frameworkruntime.Registry) namedFactory {
	return func(name string) frameworkruntime.PluginFactory {
		return func(ctx context.Context, _ runtime.Object, handle framework.Handle) (framework.Plugin, error) {
			defaults, err := latest.Default()
			if err != nil {
				return nil, fmt.Errorf("read default plugin arguments: %w", err)
			}
			arguments := map[string]runtime.Object{}
			for _, plugin := range defaults.Profiles[0].PluginConfig {
				arguments[plugin.Name] = plugin.Args
			}
			upstream, all := plugins.NewInTreeRegistry(), &allPredicates{name: name}
			for _, name := range names {
				factory, ok := registry[name]
				if !ok {
					factory = upstream[name]
				}
				plugin, err := factory(ctx, arguments[name], handle)
				if err != nil {
					return nil, fmt.Errorf("create plugin %s: %w", name, err)
				}
				all.plugins = append(all.plugins, plugin)
			}
			return all, nil
		}
	}
}

func (p *allPredicates) Name() string { return p.name }

// skippedPredicates holds the predicates that have nothing to check for a pod.
type skippedPredicates map[string]bool

// Clone returns the same state, because plugins do not change it after PreFilter.
func (s skippedPredicates) Clone() framework.StateData { return s }

func (p *allPredicates) PreFilter(ctx context.Context, state framework.CycleState, pod *corev1.Pod, nodes []framework.NodeInfo) (*framework.PreFilterResult, *framework.Status) {
	skipped := skippedPredicates{}
	var merged *framework.PreFilterResult
	for _, plugin := range p.plugins {
		filter, ok := plugin.(framework.PreFilterPlugin)
		if !ok {
			continue
		}
		result, status := filter.PreFilter(ctx, state, pod, nodes)
		switch {
		case status.IsSkip():
			skipped[plugin.Name()] = true
		case !status.IsSuccess():
			return nil, status
		case !result.AllNodes():
			merged = merged.Merge(result)
		}
	}
	state.Write(framework.StateKey(p.name), skipped)
	return merged, nil
}

func (p *allPredicates) PreFilterExtensions() framework.PreFilterExtensions { return p }

func (p *allPredicates) AddPod(ctx context.Context, state framework.CycleState, pod *corev1.Pod, added framework.PodInfo, node framework.NodeInfo) *framework.Status {
	return p.extend(state, func(e framework.PreFilterExtensions) *framework.Status { return e.AddPod(ctx, state, pod, added, node) })
}

func (p *allPredicates) RemovePod(ctx context.Context, state framework.CycleState, pod *corev1.Pod, removed framework.PodInfo, node framework.NodeInfo) *framework.Status {
	return p.extend(state, func(e framework.PreFilterExtensions) *framework.Status {
		return e.RemovePod(ctx, state, pod, removed, node)
	})
}

func (p *allPredicates) extend(state framework.CycleState, call func(framework.PreFilterExtensions) *framework.Status) *framework.Status {
	skipped, status := p.skipped(state)
	if status != nil {
		return status
	}
	for _, plugin := range p.plugins {
		filter, ok := plugin.(framework.PreFilterPlugin)
		if !ok || skipped[plugin.Name()] || filter.PreFilterExtensions() == nil {
			continue
		}
		if status := call(filter.PreFilterExtensions()); !status.IsSuccess() {
			return status
		}
	}
	return nil
}

func (p *allPredicates) skipped(state framework.CycleState) (skippedPredicates, *framework.Status) {
	data, err := state.Read(framework.StateKey(p.name))
	if err != nil {
		return nil, framework.AsStatus(err)
	}
	return data.(skippedPredicates), nil
}

func (p *allPredicates) Filter(ctx context.Context, state framework.CycleState, pod *corev1.Pod, node framework.NodeInfo) *framework.Status {
	skipped, status := p.skipped(state)
	if status != nil {
		return status
	}
	code, reasons := framework.Success, []string(nil)
	for _, plugin := range p.plugins {
		filter, ok := plugin.(framework.FilterPlugin)
		if !ok || skipped[plugin.Name()] {
			continue
		}
		status := filter.Filter(ctx, state, pod, node)
		switch {
		case status.IsSuccess():
			continue
		case !status.IsRejected():
			return status
		case code != framework.UnschedulableAndUnresolvable:
			code = status.Code()
		}
		reasons = append(reasons, status.Reasons()...)
	}
	if code == framework.Success {
		return nil
	}
	return framework.NewStatus(code, slices.Compact(reasons)...)
}
