package scheduler

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// TestPreemptionChangesOldestPod removes pods from a clone of the state, as preemption does.
func TestPreemptionChangesOldestPod(t *testing.T) {
	aged := func(name string, seconds int64) *corev1.Pod {
		pod := pod(name, "")
		pod.CreationTimestamp = metav1.NewTime(time.Unix(seconds, 0))
		return pod
	}
	state := &affinityState{selectors: []labels.Selector{labels.Everything()}}
	for _, peer := range []*corev1.Pod{aged("c", 3), aged("a", 1), aged("b", 1)} {
		state.add(pod("new", ""), peer, node(peer.Name, "region="+peer.Name))
	}
	clone := state.Clone().(*affinityState)
	for _, want := range []string{"a", "b", "c"} {
		if clone.oldest == nil || clone.oldest.labels["region"] != want {
			t.Fatalf("the oldest pod is %v, want %s", clone.oldest, want)
		}
		clone.remove(clone.oldest.pod)
	}
	if clone.oldest != nil {
		t.Errorf("without pods, the oldest one is %v", clone.oldest)
	}
	if len(state.peers) != 3 || state.oldest.pod.Name != "a" {
		t.Errorf("the original state has changed: %d pods, the oldest one is %s", len(state.peers), state.oldest.pod.Name)
	}
}
