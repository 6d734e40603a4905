package memory

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"

	"github.com/slipway-platform/slipway/internal/eventually"
)

func TestFirstCollectionIsDelayed(t *testing.T) {
	t.Setenv("GOGC", "")
	defer debug.SetGCPercent(collectorTarget())
	target := func() uint64 { // without setting it, as collectorTarget does
		sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
		metrics.Read(sample)
		return sample[0].Value.Uint64()
	}
	DelayCollection()
	runtime.GC()
	eventually.Equal(t, "the target after the first collection", target, usualTarget)
}

func TestDelayKeepsOwnGOGC(t *testing.T) {
	t.Setenv("GOGC", "77")
	defer debug.SetGCPercent(debug.SetGCPercent(77))
	DelayCollection()
	if got := collectorTarget(); got != 77 {
		t.Errorf("%d%%", got)
	}
}
