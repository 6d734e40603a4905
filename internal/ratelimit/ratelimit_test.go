package ratelimit

import (
	"testing"
	"time"
)

func TestKeysHaveSeparateLimiters(t *testing.T) {
	l := &Limiters[string]{Rate: 1, Burst: 2}
	now := time.Unix(0, 0)
	for range l.Burst {
		if !l.At("mallory", now).AllowN(now, 1) {
			t.Error("an event within the burst is not allowed")
		}
	}
	if l.At("mallory", now).AllowN(now, 1) || !l.At("alice", now).AllowN(now, 1) {
		t.Error("the limits of two keys are not separate")
	}
	if got := l.Len(); got != 2 {
		t.Errorf("%d limiters, want 2", got)
	}
}

func TestUnusedLimitersAreRemoved(t *testing.T) {
	l := &Limiters[string]{Rate: 1, Burst: 2}
	now := time.Unix(0, 0)
	l.At("bob", now).AllowN(now, 1)
	l.At("mallory", now).AllowN(now, 2)
	now = now.Add(time.Second) // bob's limiter is full again
	l.At("carol", now)
	if l.limiters["bob"] != nil || l.limiters["mallory"] == nil || l.limiters["carol"] == nil {
		t.Errorf("limiters %v remain", l.limiters)
	}
}
