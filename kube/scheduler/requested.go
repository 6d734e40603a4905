package scheduler

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kube-scheduler/framework"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

// mostRequested implements MostRequestedPriority: it scores resources as upstream does, but with
// the opposite of the strategy for LeastRequestedPriority. It is a separate plugin because a Policy
// can contain both priorities.
type mostRequested struct {
	framework.PreScorePlugin
	framework.ScorePlugin
	name string
}

func newMostRequested(name string) frameworkruntime.PluginFactory {
	return func(ctx context.Context, _ runtime.Object, handle framework.Handle) (framework.Plugin, error) {
		args := &schedulerconfig.NodeResourcesFitArgs{ScoringStrategy: &schedulerconfig.ScoringStrategy{
			Type:      schedulerconfig.MostAllocated,
			Resources: []schedulerconfig.ResourceSpec{{Name: "cpu", Weight: 1}, {Name: "memory", Weight: 1}},
		}}
		features := feature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate)
		plugin, err := noderesources.NewFit(ctx, args, handle, features)
		if err != nil {
			return nil, fmt.Errorf("create %s: %w", name, err)
		}
		return &mostRequested{plugin.(framework.PreScorePlugin), plugin.(framework.ScorePlugin), name}, nil
	}
}

func (p *mostRequested) Name() string { return p.name }
