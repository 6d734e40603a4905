package imagecontroller

import (
	"testing"
	"time"
)

func TestProjectWithManyStreamsDoesNotDelayOthers(t *testing.T) {
	var turns turns
	now, free := time.Unix(0, 0), 0
	accept := func() bool {
		if free == 0 {
			return false
		}
		free--
		return true
	}
	got := map[string]int{}
	for second := range 60 {
		now = now.Add(time.Second)
		free++ // the rate is one import per second
		for range 1000 {
			if turns.take("large", now, accept) {
				got["large"]++
			}
		}
		if second%10 == 0 && turns.take("small", now.Add(time.Millisecond), accept) {
			got["small"]++
		}
	}
	if got["small"] < 2 || got["large"] < 10 {
		t.Errorf("got imports %v, want some for each project", got)
	}
}

func TestProjectThatStopsWaitingDoesNotDelayOthers(t *testing.T) {
	var turns turns
	accept, reject := func() bool { return true }, func() bool { return false }
	start := time.Unix(0, 0)
	if !turns.take("one", start, accept) || turns.take("two", start, reject) {
		t.Fatal("projects without imports are not limited by the rate alone")
	}
	if turns.take("one", start.Add(time.Second), accept) {
		t.Error("a project gets a second import before a waiting project gets one")
	}
	if !turns.take("one", start.Add(waitPeriod+2*time.Second), accept) {
		t.Error("a project that has stopped waiting delays another one")
	}
}
