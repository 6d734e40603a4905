package descheduler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/descheduler/pkg/api"
	"sigs.k8s.io/descheduler/pkg/descheduler/evictions"
	nodeutil "sigs.k8s.io/descheduler/pkg/descheduler/node"
	podutil "sigs.k8s.io/descheduler/pkg/descheduler/pod"
	frameworktypes "sigs.k8s.io/descheduler/pkg/framework/types"
	"sigs.k8s.io/descheduler/pkg/utils"
)

// lowUtilization is the name of both the strategy and the plugin. The upstream plugin is not used,
// because it requires an older Prometheus client than other components.
const lowUtilization = "LowNodeUtilization"

// utilizationArgs contains the plugin's arguments, as percentages of a node's allocatable
// resources.
type utilizationArgs struct {
	metav1.TypeMeta `json:",inline"`
	// Thresholds defines when a node is underutilized: when the requests for every resource are at
	// or below the resource's threshold.
	Thresholds api.ResourceThresholds `json:"thresholds"`
	// TargetThresholds defines when pods are evicted from a node: when the requests for at least
	// one resource exceed the resource's threshold.
	TargetThresholds api.ResourceThresholds `json:"targetThresholds"`
	// NumberOfNodes limits the strategy: it evicts pods only if more than this number of nodes are
	// underutilized.
	NumberOfNodes int `json:"numberOfNodes"`
}

// DeepCopyObject implements runtime.Object, so that policies can contain utilizationArgs.
func (a *utilizationArgs) DeepCopyObject() runtime.Object {
	args := *a
	args.Thresholds, args.TargetThresholds = maps.Clone(a.Thresholds), maps.Clone(a.TargetThresholds)
	return &args
}

// check returns all errors in the arguments.
func (a *utilizationArgs) check() error {
	var errs []error
	if len(a.Thresholds) == 0 {
		errs = append(errs, errors.New("thresholds is empty; set a percentage of cpu, memory or pods"))
	}
	for _, name := range slices.Sorted(maps.Keys(a.Thresholds)) {
		low, target := a.Thresholds[name], a.TargetThresholds[name]
		if _, ok := a.TargetThresholds[name]; !ok {
			errs = append(errs, fmt.Errorf("targetThresholds has no %s, but thresholds has it", name))
		} else if low < 0 || low > target || target > 100 {
			errs = append(errs, fmt.Errorf("%s is %v in thresholds and %v in targetThresholds; both must be percentages, and the threshold must not exceed the target", name, low, target))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(a.TargetThresholds)) {
		if _, ok := a.Thresholds[name]; !ok {
			errs = append(errs, fmt.Errorf("thresholds has no %s, but targetThresholds has it", name))
		}
	}
	if a.NumberOfNodes < 0 {
		errs = append(errs, fmt.Errorf("numberOfNodes is %d, must be 0 or more", a.NumberOfNodes))
	}
	return errors.Join(errs...)
}

// balancer is the LowNodeUtilization plugin. It evicts pods from nodes above the target thresholds
// if nodes below the thresholds have room for the pods.
type balancer struct {
	args   *utilizationArgs
	handle frameworktypes.Handle
}

var _ frameworktypes.BalancePlugin = &balancer{}

func newBalancer(_ context.Context, args runtime.Object, handle frameworktypes.Handle) (frameworktypes.Plugin, error) {
	settings, ok := args.(*utilizationArgs)
	if !ok {
		return nil, fmt.Errorf("arguments of %s have type %T", lowUtilization, args)
	}
	return &balancer{args: settings, handle: handle}, nil
}

// Name returns the plugin's name.
func (b *balancer) Name() string { return lowUtilization }

// amounts maps resources to quantities. The quantity of the pods resource is the number of pods.
type amounts map[corev1.ResourceName]float64

// load is a node together with the total resource requests of its pods.
type load struct {
	node     *corev1.Node
	pods     []*corev1.Pod
	capacity amounts
	usage    amounts
}

// Balance evicts pods from overutilized nodes.
func (b *balancer) Balance(ctx context.Context, nodes []*corev1.Node) *frameworktypes.Status {
	var low, high []*load
	for _, node := range nodes {
		l, err := b.load(node)
		if err != nil {
			return &frameworktypes.Status{Err: err}
		}
		switch {
		case !node.Spec.Unschedulable && !l.above(b.args.Thresholds):
			low = append(low, l)
		case l.above(b.args.TargetThresholds):
			high = append(high, l)
		}
	}
	if len(low) == 0 || len(low) <= b.args.NumberOfNodes {
		return &frameworktypes.Status{}
	}
	free, targets := amounts{}, []*corev1.Node{}
	for _, l := range low {
		targets = append(targets, l.node)
		for name, percentage := range b.args.TargetThresholds {
			free[name] += l.capacity[name]*float64(percentage)/100 - l.usage[name]
		}
	}
	slices.SortFunc(high, func(x, y *load) int {
		return cmp.Compare(y.highest(b.args.TargetThresholds), x.highest(b.args.TargetThresholds))
	})
	for _, l := range high {
		if !b.relieve(ctx, l, targets, free) {
			break
		}
	}
	return &frameworktypes.Status{}
}

// relieve evicts pods from a node until the node is below the target thresholds or the target nodes
// are full. Pods with a low priority are evicted first. Among pods with the same priority, pods
// without resource requests are evicted first. relieve returns false if the policy allows no
// further evictions.
func (b *balancer) relieve(ctx context.Context, l *load, targets []*corev1.Node, free amounts) bool {
	evictor := b.handle.Evictor()
	podutil.SortPodsBasedOnPriorityLowToHigh(l.pods)
	for _, pod := range l.pods {
		if !l.above(b.args.TargetThresholds) || slices.Min(slices.Collect(maps.Values(free))) <= 0 {
			break
		}
		if !evictor.Filter(pod) || !evictor.PreEvictionFilter(pod) || !nodeutil.PodFitsAnyNode(b.handle.GetPodsAssignedToNodeFunc(), pod, targets) {
			continue
		}
		err := evictor.Evict(ctx, pod, evictions.EvictOptions{StrategyName: lowUtilization})
		if total := (&evictions.EvictionTotalLimitError{}); errors.As(err, &total) {
			return false
		}
		if node := (&evictions.EvictionNodeLimitError{}); errors.As(err, &node) {
			break
		}
		if err != nil {
			continue // the evictor has reported the error
		}
		for name, amount := range requests(pod) {
			l.usage[name] -= amount
			if _, ok := free[name]; ok {
				free[name] -= amount
			}
		}
	}
	return true
}

func (b *balancer) load(node *corev1.Node) (*load, error) {
	all := func(*corev1.Pod) bool { return true }
	pods, err := podutil.ListPodsOnANode(node.Name, b.handle.GetPodsAssignedToNodeFunc(), all)
	if err != nil {
		return nil, fmt.Errorf("list pods of node %q: %w", node.Name, err)
	}
	l := &load{node: node, pods: pods, capacity: amounts{}, usage: amounts{}}
	for name, quantity := range node.Status.Allocatable {
		l.capacity[name] = quantity.AsApproximateFloat64()
	}
	for _, pod := range pods {
		for name, amount := range requests(pod) {
			l.usage[name] += amount
		}
	}
	return l, nil
}

// requests returns a pod's resource requests.
func requests(pod *corev1.Pod) amounts {
	list, _ := utils.PodRequestsAndLimits(pod)
	result := amounts{corev1.ResourcePods: 1}
	for name, quantity := range list {
		result[name] = quantity.AsApproximateFloat64()
	}
	return result
}

// above reports whether the usage of any resource exceeds its threshold.
func (l *load) above(thresholds api.ResourceThresholds) bool {
	for name, percentage := range thresholds {
		if l.percentage(name) > float64(percentage) {
			return true
		}
	}
	return false
}

// highest returns the highest usage percentage among the resources that have a threshold.
func (l *load) highest(thresholds api.ResourceThresholds) (percentage float64) {
	for name := range thresholds {
		percentage = max(percentage, l.percentage(name))
	}
	return percentage
}

func (l *load) percentage(name corev1.ResourceName) float64 {
	if l.capacity[name] == 0 {
		return 0
	}
	return 100 * l.usage[name] / l.capacity[name]
}
