package scheduler

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kube-scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"github.com/slipway-platform/slipway/kube/scheduler/policy"
)

// labelsPresence implements the labelsPresence predicate: nodes must have all labels in a list, or
// none of them.
type labelsPresence struct {
	name     string
	labels   []string
	presence bool
}

func newLabelsPresence(argument *policy.LabelsPresence) namedFactory {
	return func(name string) frameworkruntime.PluginFactory {
		return func(context.Context, runtime.Object, framework.Handle) (framework.Plugin, error) {
			return &labelsPresence{name, argument.Labels, argument.Presence}, nil
		}
	}
}

func (p *labelsPresence) Name() string { return p.name }

func (p *labelsPresence) Filter(_ context.Context, _ framework.CycleState, _ *corev1.Pod, node framework.NodeInfo) *framework.Status {
	for _, label := range p.labels {
		if _, ok := node.Node().Labels[label]; ok != p.presence {
			verb := "have"
			if p.presence {
				verb = "lack"
			}
			return framework.NewStatus(framework.UnschedulableAndUnresolvable, fmt.Sprintf("node(s) %s the label %s", verb, label))
		}
	}
	return nil
}

// labelPreference implements the labelPreference priority: it prefers nodes that have a label, or
// nodes that do not have it.
type labelPreference struct {
	name, label string
	presence    bool
}

func newLabelPreference(argument *policy.LabelPreference) namedFactory {
	return func(name string) frameworkruntime.PluginFactory {
		return func(context.Context, runtime.Object, framework.Handle) (framework.Plugin, error) {
			return &labelPreference{name, argument.Label, argument.Presence}, nil
		}
	}
}

func (p *labelPreference) Name() string { return p.name }

func (p *labelPreference) Score(_ context.Context, _ framework.CycleState, _ *corev1.Pod, node framework.NodeInfo) (int64, *framework.Status) {
	if _, ok := node.Node().Labels[p.label]; ok == p.presence {
		return framework.MaxScore, nil
	}
	return 0, nil
}

func (p *labelPreference) ScoreExtensions() framework.ScoreExtensions { return nil }
