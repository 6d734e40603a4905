package memory

import (
	"runtime/debug"
	"runtime/metrics"
	"testing"
)

// collectorTarget returns the current target in percent.
func collectorTarget() uint64 {
	sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

func TestGarbageIsLimited(t *testing.T) {
	for name, test := range map[string]struct {
		gogc string
		want uint64
	}{
		"by default":               {"", target},
		"as the administrator set": {"77", 77},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("GOGC", test.gogc)
			defer debug.SetGCPercent(debug.SetGCPercent(77))
			LimitGarbage()
			if got := collectorTarget(); got != test.want {
				t.Errorf("the target is %d%%, want %d%%", got, test.want)
			}
		})
	}
}
