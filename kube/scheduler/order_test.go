package scheduler

import (
	"slices"
	"testing"
	"time"

	componentconfig "k8s.io/component-base/config/v1alpha1"
	configv1 "k8s.io/kube-scheduler/config/v1"
	"k8s.io/kube-scheduler/framework"
	schedulerframework "k8s.io/kubernetes/pkg/scheduler/framework"
	"sigs.k8s.io/yaml"
)

// queued is a pod in the scheduler's queue.
type queued struct {
	framework.QueuedEntityInfo
	priority      int32
	unschedulable int
	second        int64
}

func (q queued) GetPriority() int32         { return q.priority }
func (q queued) GetUnschedulableCount() int { return q.unschedulable }
func (q queued) GetTimestamp() time.Time    { return time.Unix(q.second, 0) }

var _ framework.QueuedEntityInfo = &schedulerframework.QueuedPodInfo{}

func TestNewPodsPrecedePodsThatFitNoNode(t *testing.T) {
	want := []queued{
		{priority: 1, unschedulable: 3, second: 9}, {second: 5}, {second: 6}, {unschedulable: 7, second: 1}, {unschedulable: 1, second: 2},
		{second: 13}, // the pods that fit no node have waited long enough
	}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, func(a, b queued) int {
		switch {
		case newPodsFirst{}.Less(a, b):
			return -1
		case newPodsFirst{}.Less(b, a):
			return 1
		}
		return 0
	})
	if !slices.Equal(got, want) {
		t.Errorf("order %v, want %v", got, want)
	}
}

func TestProfilesUseOneOrder(t *testing.T) {
	for name, tt := range map[string]struct {
		settings Settings
		want     []string
	}{
		"default":               {Settings{}, []string{newPodsFirstName}},
		"without preemption":    {Settings{DisablePreemption: true}, []string{newPodsFirstName}},
		"profiles":              {Settings{Configuration: []byte("profiles: [{schedulerName: a}, {schedulerName: b, plugins: {score: {}}}]")}, []string{newPodsFirstName, newPodsFirstName}},
		"profile with an order": {Settings{Configuration: []byte("profiles: [{plugins: {queueSort: {enabled: [{name: PrioritySort}]}}}]")}, []string{"PrioritySort"}},
	} {
		t.Run(name, func(t *testing.T) {
			built, err := tt.settings.Build(componentconfig.ClientConnectionConfiguration{})
			if err != nil {
				t.Fatal(err)
			}
			var scheduler configv1.KubeSchedulerConfiguration
			if err := yaml.UnmarshalStrict(built.YAML, &scheduler); err != nil {
				t.Fatal(err)
			}
			var got []string
			for i := range scheduler.Profiles {
				for _, plugin := range scheduler.Profiles[i].Plugins.QueueSort.Enabled {
					got = append(got, plugin.Name)
				}
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("orders %v, want %v", got, tt.want)
			}
		})
	}
}
