package memory

import (
	"runtime/debug"
	"testing"
)

// collectorTarget is how the collector is set.
func collectorTarget() int {
	percent := debug.SetGCPercent(100)
	debug.SetGCPercent(percent)
	return percent
}

func TestTheCollectorRunsSeldomDuringAStart(t *testing.T) {
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

func TestTheAdministratorsOwnTargetWins(t *testing.T) {
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
