package haproxy

import (
	"testing"
	"time"
)

func TestReloadsStartWhenDue(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	const interval = 10 * time.Second
	for name, tt := range map[string]struct {
		situation situation
		wait      time.Duration
		start     bool
	}{
		"first configuration starts HAProxy":             {situation{}, 0, true},
		"start in progress":                              {situation{reloading: true}, 0, false},
		"ended HAProxy waits for the backoff":            {situation{reloaded: ago(minBackoff / 4)}, minBackoff * 3 / 4, false},
		"ended HAProxy restarts after the backoff":       {situation{reloaded: ago(minBackoff)}, 0, true},
		"rejected first configuration waits":             {situation{reloaded: ago(time.Minute), retry: now.Add(time.Second)}, time.Second, false},
		"everything is served":                           {situation{serving: true, complete: true, settled: true}, 0, false},
		"commands are not enough":                        {situation{serving: true, interval: interval, reloaded: ago(interval)}, 0, true},
		"interval has not passed":                        {situation{serving: true, interval: interval, reloaded: ago(time.Second)}, 9 * time.Second, false},
		"reload in progress":                             {situation{serving: true, reloading: true, interval: interval}, 0, false},
		"failed reload waits for the backoff":            {situation{serving: true, reloaded: ago(time.Hour), retry: now.Add(3 * time.Second)}, 3 * time.Second, false},
		"spare backends collect changes":                 {situation{serving: true, complete: true, interval: interval, reloaded: ago(time.Hour), since: ago(time.Second)}, 9 * time.Second, false},
		"spare backends are replaced after the interval": {situation{serving: true, complete: true, interval: interval, reloaded: ago(time.Hour), since: ago(interval)}, 0, true},
		"scarce spare backends do not wait for more":     {situation{serving: true, complete: true, scarce: true, interval: interval, reloaded: ago(time.Hour), since: ago(time.Second)}, 0, true},
		"incomplete configuration does not wait either":  {situation{serving: true, interval: interval, reloaded: ago(time.Hour), since: ago(time.Second)}, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			if wait, start := tt.situation.next(now); wait != tt.wait || start != tt.start {
				t.Errorf("next is %v, %t, want %v, %t", wait, start, tt.wait, tt.start)
			}
		})
	}
}
