package node

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
)

func TestDiskEventsFollowDiskPressure(t *testing.T) {
	recorder := record.NewFakeRecorder(10)
	events := nodeEvents{recorder}
	for _, reason := range []string{"NodeHasNoDiskPressure", "NodeHasDiskPressure", "NodeReady"} {
		events.Eventf(&corev1.Node{}, corev1.EventTypeNormal, reason, "Node %s status is now: %s", "m01", reason)
	}
	close(recorder.Events)
	var got []string
	for event := range recorder.Events {
		got = append(got, event)
	}
	want := []string{
		"Normal NodeHasNoDiskPressure Node m01 status is now: NodeHasNoDiskPressure",
		"Normal NodeHasSufficientDisk Node m01 status is now: NodeHasSufficientDisk",
		"Normal NodeHasDiskPressure Node m01 status is now: NodeHasDiskPressure",
		"Normal NodeOutOfDisk Node m01 status is now: NodeOutOfDisk",
		"Normal NodeReady Node m01 status is now: NodeReady",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}
