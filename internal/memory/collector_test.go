package memory

import (
	"runtime"
	"runtime/debug"
	"testing"
)

// collector is how it is set.
func collector() (percent int, limit int64) {
	percent = debug.SetGCPercent(100)
	debug.SetGCPercent(percent)
	return percent, debug.SetMemoryLimit(-1)
}

// keepCollector puts the collector's settings back after the test.
func keepCollector(t *testing.T) {
	t.Helper()
	percent, limit := collector()
	t.Cleanup(func() { debug.SetGCPercent(percent); debug.SetMemoryLimit(limit) })
}

func TestTheCollectorDoesNotRunDuringAStart(t *testing.T) {
	t.Setenv("GOGC", "")
	keepCollector(t)
	_, before := collector()
	end := BeginStart()
	collections := func() uint32 {
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return stats.NumGC
	}
	began := collections()
	var kept [][]byte
	for range 64 {
		kept = append(kept, make([]byte, 1<<20))
	}
	if ran := collections() - began; ran != 0 {
		t.Errorf("it ran %d times while %d MiB were allocated", ran, len(kept))
	}
	if _, limit := collector(); limit != startLimit {
		t.Errorf("limit %d, want %d", limit, startLimit)
	}
	end()
	if percent, limit := collector(); percent != target || limit != before {
		t.Errorf("after the start: %d%%, limit %d; want %d%% and %d", percent, limit, target, before)
	}
}

func TestALowerLimitIsKept(t *testing.T) {
	t.Setenv("GOGC", "")
	keepCollector(t)
	const own = startLimit / 2
	debug.SetMemoryLimit(own)
	end := BeginStart()
	if _, limit := collector(); limit != own {
		t.Errorf("limit %d during the start, want %d", limit, own)
	}
	if end(); debug.SetMemoryLimit(-1) != own {
		t.Error("another limit after the start")
	}
}

func TestTheAdministratorsOwnTargetWins(t *testing.T) {
	t.Setenv("GOGC", "77")
	keepCollector(t)
	debug.SetGCPercent(77)
	end := BeginStart()
	if percent, _ := collector(); percent != 77 {
		t.Errorf("%d%% during the start", percent)
	}
	end()
	if percent, _ := collector(); percent != 77 {
		t.Errorf("%d%% after the start", percent)
	}
}
