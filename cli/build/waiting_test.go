package build

import (
	"bytes"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestWaitingMessageIsRepeated(t *testing.T) {
	var out bytes.Buffer
	clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	notifier := newNotifier(&out, clock)
	for _, at := range []struct {
		second int64
		reason string
	}{{0, "a"}, {2, "a"}, {3, "a"}, {4, "a"}, {5, "b"}, {19, "b"}, {20, "b"}, {60, "b"}} {
		clock.SetTime(time.Unix(at.second, 0))
		notifier.report("app-1", at.reason)
	}
	want := `Waiting for build "app-1" (3s): a
Waiting for build "app-1" (5s): b
Waiting for build "app-1" (20s): b
Waiting for build "app-1" (1m0s): b
`
	if out.String() != want {
		t.Errorf("messages\n%s", out.String())
	}
}

func TestReasonOfPendingPod(t *testing.T) {
	waiting := func(reason, message string) corev1.PodStatus {
		return corev1.PodStatus{
			Conditions:        []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}},
			ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}},
		}
	}
	for want, status := range map[string]corev1.PodStatus{
		"its pod app-1-build is starting": {},
		"its pod app-1-build is not scheduled: 0/1 nodes are available": {Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/1 nodes are available"}}},
		"its pod app-1-build is ContainerCreating":           waiting("ContainerCreating", ""),
		"its pod app-1-build is ErrImagePull: no such image": waiting("ErrImagePull", "no such image"),
	} {
		if got := podReason(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "app-1-build"}, Status: status}); got != want {
			t.Errorf("reason %q, want %q", got, want)
		}
	}
}
