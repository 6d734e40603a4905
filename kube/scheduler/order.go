package scheduler

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	configv1 "k8s.io/kube-scheduler/config/v1"
	"k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
)

// newPodsFirstName is the name of the newPodsFirst plugin.
const newPodsFirstName = "NewPodsFirst"

// retryPenalty is how long new pods take precedence over a pod that fit no node. After that, the
// pod takes precedence over newer pods, so that a stream of new pods cannot delay it forever.
const retryPenalty = 10 * time.Second

// newPodsFirst orders the scheduler's queue first by priority and then by time, as upstream does.
// However, it treats pods that fit no node in an earlier attempt as if they had been added
// retryPenalty later. With upstream's order, a new pod waits until the scheduler has tried all of
// these pods again. They can be thousands of pods of another project.
type newPodsFirst struct{}

var _ framework.QueueSortPlugin = newPodsFirst{}

func newNewPodsFirst(context.Context, runtime.Object, framework.Handle) (framework.Plugin, error) {
	return newPodsFirst{}, nil
}

// Name returns the plugin's name.
func (newPodsFirst) Name() string { return newPodsFirstName }

// Less reports whether the scheduler tries a before b.
func (newPodsFirst) Less(a, b framework.QueuedEntityInfo) bool {
	if a.GetPriority() != b.GetPriority() {
		return a.GetPriority() > b.GetPriority()
	}
	return turn(a).Before(turn(b))
}

// turn returns the time by which the queue orders pods of the same priority.
func turn(pod framework.QueuedEntityInfo) time.Time {
	if pod.GetUnschedulableCount() > 0 {
		return pod.GetTimestamp().Add(retryPenalty)
	}
	return pod.GetTimestamp()
}

// sort makes all profiles use newPodsFirst, unless a profile selects its own order: upstream
// requires the same order for all profiles.
func sort(scheduler *configv1.KubeSchedulerConfiguration) {
	for i := range scheduler.Profiles {
		if plugins := scheduler.Profiles[i].Plugins; plugins != nil && len(plugins.QueueSort.Enabled)+len(plugins.QueueSort.Disabled) > 0 {
			return
		}
	}
	for _, plugins := range profilePlugins(scheduler) {
		plugins.QueueSort = configv1.PluginSet{
			Enabled: []configv1.Plugin{{Name: newPodsFirstName}}, Disabled: []configv1.Plugin{{Name: names.PrioritySort}},
		}
	}
}

// profilePlugins returns the plugins of all profiles. It adds a profile if there is none.
func profilePlugins(scheduler *configv1.KubeSchedulerConfiguration) (all []*configv1.Plugins) {
	if len(scheduler.Profiles) == 0 {
		scheduler.Profiles = []configv1.KubeSchedulerProfile{{}}
	}
	for i := range scheduler.Profiles {
		profile := &scheduler.Profiles[i]
		if profile.Plugins == nil {
			profile.Plugins = &configv1.Plugins{}
		}
		all = append(all, profile.Plugins)
	}
	return all
}
