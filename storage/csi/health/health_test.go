package health

import (
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"k8s.io/client-go/tools/record"

	"github.com/slipway-platform/slipway/controller"
	"github.com/slipway-platform/slipway/storage/csi/csitest"
	"github.com/slipway-platform/slipway/storage/csi/fake"
	"github.com/slipway-platform/slipway/storage/csi/session"
)

func TestHealthChangesAreReportedOnce(t *testing.T) {
	list := []csi.ControllerServiceCapability_RPC_Type{csi.ControllerServiceCapability_RPC_LIST_VOLUME_HEALTH}
	for name, options := range map[string]fake.Options{"list": {}, "each": {LacksController: list}} {
		t.Run(name, func(t *testing.T) {
			b := csitest.NewBench(t, options)
			events := record.NewFakeRecorder(10)
			b.Start(func(s *session.Session) ([]controller.Controller, error) {
				s.Events = events
				return Feature(Options{Interval: 10 * time.Millisecond})(s)
			})
			b.Storage.SetHealth(b.Handle, csi.VolumeHealthErrorType_DATA_LOSS)
			want(t, events, "Warning VolumeConditionAbnormal The volume is unhealthy: data_loss.")
			b.Storage.SetHealth(b.Handle, csi.VolumeHealthErrorType_UNKNOWN_VOLUME_HEALTH_TYPE)
			want(t, events, "Normal VolumeConditionNormal The volume is healthy again.")
		})
	}
}

// want checks the next event. It also detects a duplicate of an earlier event, because the
// duplicate would precede the expected event.
func want(t *testing.T, events *record.FakeRecorder, text string) {
	t.Helper()
	select {
	case got := <-events.Events:
		if got != text {
			t.Errorf("event %q, want %q", got, text)
		}
	case <-time.After(time.Minute):
		t.Fatalf("no event: %q", text)
	}
}
