package scheduler

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kube-scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

// serviceAffinity implements the serviceAffinity predicate: a service's pods run on nodes with the
// same values for some labels. The pod's node selector determines the values of the labels that it
// contains. The node of the service's oldest pod determines the values of the other labels.
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

// affinityState holds the pods of the services that select the pod that is being scheduled.
// Preemption adds and removes pods in a clone.
type affinityState struct {
	selectors []labels.Selector
	peers     []peer
	// oldest is the oldest peer, or nil. It is computed in advance, because Filter reads it for
	// every node.
	oldest *peer
}

// peer is one of the service's pods, with the labels of its node.
type peer struct {
	pod    *corev1.Pod
	labels map[string]string
}

func (s *affinityState) Clone() framework.StateData {
	return &affinityState{s.selectors, slices.Clone(s.peers), s.oldest}
}

func (p *serviceAffinity) Name() string { return p.name }

func (p *serviceAffinity) PreFilter(_ context.Context, state framework.CycleState, pod *corev1.Pod, _ []framework.NodeInfo) (*framework.PreFilterResult, *framework.Status) {
	data := &affinityState{}
	if !p.selectsAll(pod) {
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
		added := peer{pod, node.Labels}
		s.peers = append(s.peers, added)
		if s.oldest == nil || added.compare(*s.oldest) < 0 {
			s.oldest = &added
		}
	}
}

func (s *affinityState) remove(pod *corev1.Pod) {
	s.peers = slices.DeleteFunc(s.peers, func(p peer) bool { return p.pod.UID == pod.UID })
	if s.oldest == nil || s.oldest.pod.UID != pod.UID {
		return
	}
	s.oldest = nil
	if len(s.peers) > 0 {
		oldest := slices.MinFunc(s.peers, peer.compare)
		s.oldest = &oldest
	}
}

// compare orders pods by age, and pods created in the same second by name. The result is negative
// if p is older than other.
func (p peer) compare(other peer) int {
	return cmp.Or(p.pod.CreationTimestamp.Compare(other.pod.CreationTimestamp.Time), strings.Compare(p.pod.Name, other.pod.Name))
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
	data.remove(removed.GetPod())
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
	for _, label := range p.labels {
		want, required := pod.Spec.NodeSelector[label]
		if want == "" && data.oldest != nil {
			if value, ok := data.oldest.labels[label]; ok {
				want, required = value, true
			}
		}
		if value, ok := node.Node().Labels[label]; required && (!ok || value != want) {
			return framework.NewStatus(framework.Unschedulable, "node(s) didn't match service affinity by "+strings.Join(p.labels, ", "))
		}
	}
	return nil
}

// selectsAll reports whether the pod's node selector contains all the labels.
func (p *serviceAffinity) selectsAll(pod *corev1.Pod) bool {
	for _, label := range p.labels {
		if _, ok := pod.Spec.NodeSelector[label]; !ok {
			return false
		}
	}
	return true
}
