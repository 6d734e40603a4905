package memory

import (
	"runtime/debug"
	"testing"
)

// collectorTarget returns the current target.
func collectorTarget() int {
	percent := debug.SetGCPercent(100)
	debug.SetGCPercent(percent)
	return percent
}

func TestStartDelaysCollection(t *testing.T) {
	t.Setenv("GOGC", "")
	before := collectorTarget()
	defer debug.SetGCPercent(before)
	end := BeginStart()
	if got := collectorTarget(); got != startTarget {
		t.Errorf("%d%% during the start, want %d%%", got, startTarget)
	}
	end()
	if got := collectorTarget(); got != target {
		t.Errorf("%d%% after the start, want %d%%", got, target)
	}
}

func TestStartKeepsOwnGOGC(t *testing.T) {
	t.Setenv("GOGC", "77")
	before := debug.SetGCPercent(77)
	defer debug.SetGCPercent(before)
	end := BeginStart()
	if got := collectorTarget(); got != 77 {
		t.Errorf("%d%% during the start", got)
	}
	end()
	if got := collectorTarget(); got != 77 {
		t.Errorf("%d%% after the start", got)
	}
}
