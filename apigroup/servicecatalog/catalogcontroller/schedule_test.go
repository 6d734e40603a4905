package catalogcontroller

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/apigroup/servicecatalog/v1beta1"
)

func TestDelayDoublesUnlessBrokerRequestsLongerOne(t *testing.T) {
	s := newSchedule(Timing{MinBackoff: time.Second, MaxBackoff: 5 * time.Second})
	instance := &v1beta1.ServiceInstance{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db"}}
	for i, tt := range []struct{ requested, want time.Duration }{
		{0, time.Second}, {0, 2 * time.Second}, {time.Minute, time.Minute}, {0, 5 * time.Second}, {time.Second, 5 * time.Second},
	} {
		if got := s.fail(instanceKind, instance, tt.requested); got != tt.want {
			t.Errorf("failure %d: the delay is %s, want %s", i+1, got, tt.want)
		}
	}
	start := metav1.NewTime(time.Now().Add(-time.Hour))
	for requested, want := range map[time.Duration]time.Duration{0: 5 * time.Second, time.Minute: time.Minute, time.Millisecond: time.Second} {
		if got := s.poll(instanceKind, instance, &start, requested); got != want {
			t.Errorf("if the broker requests %s, the next poll is in %s, want %s", requested, got, want)
		}
		if remaining := s.wait(instanceKind, instance); remaining <= 0 || remaining > want {
			t.Errorf("if the broker requests %s, the instance waits %s, want at most %s", requested, remaining, want)
		}
	}
}
