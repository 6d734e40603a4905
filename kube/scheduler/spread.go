package scheduler

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/component-helpers/node/topology"
	"k8s.io/kube-scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

// spreadState holds the selectors of the services and controllers of the pod that is being
// scheduled. For serviceAntiAffinity, it also holds the number of pods for each value of the label.
type spreadState struct {
	selectors []labels.Selector
	values    map[string]int64
	total     int64
}

// Clone returns the same state, because plugins do not change it after PreScore.
func (s *spreadState) Clone() framework.StateData { return s }

// readSpread returns the state that PreScore has written.
func readSpread(state framework.CycleState, name string) (*spreadState, *framework.Status) {
	data, err := state.Read(framework.StateKey(name))
	if err != nil {
		return nil, framework.AsStatus(err)
	}
	return data.(*spreadState), nil
}

// serviceAntiAffinity implements the serviceAntiAffinity priority: it spreads a service's pods over
// the values of a node label. Nodes without the label get a score of 0.
type serviceAntiAffinity struct {
	name, label string
	groups      *serviceGroups
	handle      framework.Handle
}

func newServiceAntiAffinity(label string) namedFactory {
	return func(name string) frameworkruntime.PluginFactory {
		return func(_ context.Context, _ runtime.Object, handle framework.Handle) (framework.Plugin, error) {
			return &serviceAntiAffinity{name, label, newServiceGroups(handle), handle}, nil
		}
	}
}

func (p *serviceAntiAffinity) Name() string { return p.name }

func (p *serviceAntiAffinity) PreScore(_ context.Context, state framework.CycleState, pod *corev1.Pod, _ []framework.NodeInfo) *framework.Status {
	selectors, err := p.groups.services(pod)
	if err != nil {
		return framework.AsStatus(err)
	}
	nodes, err := p.handle.SnapshotSharedLister().NodeInfos().List()
	if err != nil {
		return framework.AsStatus(err)
	}
	data := &spreadState{values: map[string]int64{}}
	for _, node := range nodes {
		if value, ok := node.Node().Labels[p.label]; ok {
			pods := count(node, pod.Namespace, selectors)
			data.values[value] += pods
			data.total += pods
		}
	}
	state.Write(framework.StateKey(p.name), data)
	return nil
}

func (p *serviceAntiAffinity) Score(_ context.Context, state framework.CycleState, _ *corev1.Pod, node framework.NodeInfo) (int64, *framework.Status) {
	data, status := readSpread(state, p.name)
	value, ok := node.Node().Labels[p.label]
	if status != nil || !ok {
		return 0, status
	}
	return fewest(data.values[value], data.total), nil
}

func (p *serviceAntiAffinity) ScoreExtensions() framework.ScoreExtensions { return nil }

// selectorSpread implements SelectorSpreadPriority: it prefers nodes and zones with fewer pods of
// the same services and controller. ServiceSpreadingPriority considers only services.
type selectorSpread struct {
	name        string
	services    *serviceGroups
	controllers *controllerGroups // nil to consider only services
	handle      framework.Handle
}

func newSelectorSpread(servicesOnly bool) namedFactory {
	return func(name string) frameworkruntime.PluginFactory {
		return func(_ context.Context, _ runtime.Object, handle framework.Handle) (framework.Plugin, error) {
			plugin := &selectorSpread{name: name, services: newServiceGroups(handle), handle: handle}
			if !servicesOnly {
				plugin.controllers = newControllerGroups(handle)
			}
			return plugin, nil
		}
	}
}

func (p *selectorSpread) Name() string { return p.name }

func (p *selectorSpread) PreScore(_ context.Context, state framework.CycleState, pod *corev1.Pod, _ []framework.NodeInfo) *framework.Status {
	selectors, err := p.services.services(pod)
	if err != nil {
		return framework.AsStatus(err)
	}
	if p.controllers != nil {
		if owner := p.controllers.owner(pod); owner != nil {
			selectors = append(selectors, owner)
		}
	}
	if len(selectors) == 0 {
		return framework.NewStatus(framework.Skip)
	}
	state.Write(framework.StateKey(p.name), &spreadState{selectors: selectors})
	return nil
}

// Score returns the number of matching pods on a node. NormalizeScore converts it to a score.
func (p *selectorSpread) Score(_ context.Context, state framework.CycleState, pod *corev1.Pod, node framework.NodeInfo) (int64, *framework.Status) {
	data, status := readSpread(state, p.name)
	if status != nil {
		return 0, status
	}
	return count(node, pod.Namespace, data.selectors), nil
}

func (p *selectorSpread) ScoreExtensions() framework.ScoreExtensions { return p }

// NormalizeScore gives the highest score to the node with the fewest pods. If nodes have zones, the
// number of pods in the zone determines two thirds of the score, as in OpenShift 3.
func (p *selectorSpread) NormalizeScore(_ context.Context, _ framework.CycleState, _ *corev1.Pod, scores framework.NodeScoreList) *framework.Status {
	zones := make([]string, len(scores))
	pods := map[string]int64{}
	var most, mostInZone int64
	for i, score := range scores {
		node, err := p.handle.SnapshotSharedLister().NodeInfos().Get(score.Name)
		if err != nil {
			return framework.AsStatus(err)
		}
		zones[i] = topology.GetZoneKey(node.Node())
		most = max(most, score.Score)
		if zones[i] != "" {
			pods[zones[i]] += score.Score
			mostInZone = max(mostInZone, pods[zones[i]])
		}
	}
	for i := range scores {
		score := fewest(scores[i].Score, most)
		if zones[i] != "" {
			score = (score + 2*fewest(pods[zones[i]], mostInZone)) / 3
		}
		scores[i].Score = score
	}
	return nil
}

// fewest returns the highest score for 0 pods, and 0 for the maximum number of pods.
func fewest(pods, most int64) int64 {
	if most == 0 {
		return framework.MaxScore
	}
	return framework.MaxScore * (most - pods) / most
}
