package scheduler

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kube-scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

// serviceAffinity is the predicate serviceAffinity: the pods of a service run on nodes with the
// same values of some labels. A pod's node selector decides the values that it names. The node of
// the oldest pod of the service decides the others.
type serviceAffinity struct {
	name   string
	labels []string
	groups *serviceGroups
	handle framework.Handle
}

func newServiceAffinity(labels []string) namedFactory {
	return func(name string) frameworkruntime.PluginFactory {
		return func(_ context.Context, _ runtime.Object, handle framework.Handle) (framework.Plugin, error) {
			return &serviceAffinity{name, labels, newServiceGroups(handle), handle}, nil
		}
	}
}

// affinityState contains the pods of the service of the pod that is being scheduled. Preemption
// adds and removes pods in a clone.
type affinityState struct {
	selectors []labels.Selector
	peers     map[types.UID]peer
}

// peer is a pod of the service, and the labels of its node.
type peer struct {
	pod    *corev1.Pod
	labels map[string]string
}

func (s *affinityState) Clone() framework.StateData {
	return &affinityState{s.selectors, maps.Clone(s.peers)}
}

func (p *serviceAffinity) Name() string { return p.name }

func (p *serviceAffinity) PreFilter(_ context.Context, state framework.CycleState, pod *corev1.Pod, _ []framework.NodeInfo) (*framework.PreFilterResult, *framework.Status) {
	data := &affinityState{peers: map[types.UID]peer{}}
	if len(p.selected(pod)) < len(p.labels) {
		selectors, err := p.groups.services(pod)
		if err != nil {
			return nil, framework.AsStatus(err)
		}
		data.selectors = selectors
		nodes, err := p.handle.SnapshotSharedLister().NodeInfos().List()
		if err != nil {
			return nil, framework.AsStatus(err)
		}
		for _, node := range nodes {
			for _, info := range node.GetPods() {
				data.add(pod, info.GetPod(), node.Node())
			}
		}
	}
	state.Write(framework.StateKey(p.name), data)
	return nil, nil
}

func (s *affinityState) add(scheduled, pod *corev1.Pod, node *corev1.Node) {
	if pod.Namespace == scheduled.Namespace && matchesAny(s.selectors, pod) {
		s.peers[pod.UID] = peer{pod, node.Labels}
	}
}

func (p *serviceAffinity) PreFilterExtensions() framework.PreFilterExtensions { return p }

func (p *serviceAffinity) AddPod(_ context.Context, state framework.CycleState, scheduled *corev1.Pod, added framework.PodInfo, node framework.NodeInfo) *framework.Status {
	data, err := p.read(state)
	if err != nil {
		return framework.AsStatus(err)
	}
	data.add(scheduled, added.GetPod(), node.Node())
	return nil
}

func (p *serviceAffinity) RemovePod(_ context.Context, state framework.CycleState, _ *corev1.Pod, removed framework.PodInfo, _ framework.NodeInfo) *framework.Status {
	data, err := p.read(state)
	if err != nil {
		return framework.AsStatus(err)
	}
	delete(data.peers, removed.GetPod().UID)
	return nil
}

func (p *serviceAffinity) read(state framework.CycleState) (*affinityState, error) {
	data, err := state.Read(framework.StateKey(p.name))
	if err != nil {
		return nil, fmt.Errorf("read state of %s: %w", p.name, err)
	}
	return data.(*affinityState), nil
}

func (p *serviceAffinity) Filter(_ context.Context, state framework.CycleState, pod *corev1.Pod, node framework.NodeInfo) *framework.Status {
	data, err := p.read(state)
	if err != nil {
		return framework.AsStatus(err)
	}
	required := p.selected(pod)
	if oldest := data.oldest(); oldest != nil {
		for _, label := range p.labels {
			if value, ok := oldest.labels[label]; ok && required[label] == "" {
				required[label] = value
			}
		}
	}
	if !labels.SelectorFromSet(required).Matches(labels.Set(node.Node().Labels)) {
		return framework.NewStatus(framework.Unschedulable, "node(s) didn't match service affinity by "+strings.Join(p.labels, ", "))
	}
	return nil
}

// selected returns the values of the labels in the pod's node selector.
func (p *serviceAffinity) selected(pod *corev1.Pod) map[string]string {
	values := map[string]string{}
	for _, label := range p.labels {
		if value, ok := pod.Spec.NodeSelector[label]; ok {
			values[label] = value
		}
	}
	return values
}

// oldest returns the oldest peer, or nil.
func (s *affinityState) oldest() *peer {
	if len(s.peers) == 0 {
		return nil
	}
	oldest := slices.MinFunc(slices.Collect(maps.Values(s.peers)), func(a, b peer) int {
		if order := a.pod.CreationTimestamp.Compare(b.pod.CreationTimestamp.Time); order != 0 {
			return order
		}
		return strings.Compare(a.pod.Name, b.pod.Name)
	})
	return &oldest
}
