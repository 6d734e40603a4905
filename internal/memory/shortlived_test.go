package memory

import (
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/slipway-platform/slipway/internal/eventually"
)

func TestFirstCollectionIsDelayed(t *testing.T) {
	t.Setenv("GOGC", "")
	defer debug.SetGCPercent(debug.SetGCPercent(usualTarget))
	DelayCollection()
	runtime.GC()
	eventually.Equal(t, "the target after the first collection", collectorTarget, usualTarget)
}

func TestDelayKeepsOwnGOGC(t *testing.T) {
	t.Setenv("GOGC", "77")
	defer debug.SetGCPercent(debug.SetGCPercent(77))
	DelayCollection()
	if got := collectorTarget(); got != 77 {
		t.Errorf("%d%%", got)
	}
}
