package catalogcontroller

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/controller"
)

// schedule holds the times of the next attempts and polls. Without the schedule, each status change
// would immediately trigger the next request to the broker. After a restart, all objects are due.
type schedule struct {
	timing Timing

	mu      sync.Mutex
	entries map[scheduleKey]scheduleEntry
}

type scheduleKey struct {
	kind string
	controller.Key
}

type scheduleEntry struct {
	uid        string
	generation int64
	failures   int
	due        time.Time
}

func newSchedule(timing Timing) *schedule {
	return &schedule{timing: timing, entries: map[scheduleKey]scheduleEntry{}}
}

// wait returns how long to wait before the next request for an object. Changing an object's spec or
// deleting the object increases its generation, which ends the wait.
func (s *schedule) wait(kind string, object metav1.Object) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	entry, ok := s.entries[keyOf(kind, object)]
	if !ok || entry.uid != string(object.GetUID()) || entry.generation != object.GetGeneration() {
		return 0
	}
	return max(0, time.Until(entry.due))
}

// fail schedules the next attempt after a failure. The delay doubles with each failure. It is at
// least atLeast.
func (s *schedule) fail(kind string, object metav1.Object, atLeast time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := keyOf(kind, object)
	entry := s.entries[key]
	if entry.uid != string(object.GetUID()) || entry.generation != object.GetGeneration() {
		entry = scheduleEntry{uid: string(object.GetUID()), generation: object.GetGeneration()}
	}
	delay := s.timing.MaxBackoff
	if entry.failures < 30 {
		delay = min(delay, s.timing.MinBackoff<<entry.failures)
	}
	delay = max(delay, atLeast)
	entry.failures++
	entry.due = time.Now().Add(delay)
	s.entries[key] = entry
	return delay
}

// poll schedules the next poll of an operation that started at start. The interval doubles with
// each poll, unless the broker requests a specific interval.
func (s *schedule) poll(kind string, object metav1.Object, start *metav1.Time, requested time.Duration) time.Duration {
	delay := s.timing.MinBackoff
	if start != nil {
		delay = min(max(delay, time.Since(start.Time)), s.timing.MaxBackoff)
	}
	if requested > 0 {
		delay = max(s.timing.MinBackoff, requested)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entries[keyOf(kind, object)] = scheduleEntry{uid: string(object.GetUID()), generation: object.GetGeneration(), due: time.Now().Add(delay)}
	return delay
}

// forget removes an object's schedule entry, so the object is due immediately.
func (s *schedule) forget(kind string, key controller.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.entries, scheduleKey{kind, key})
}

func keyOf(kind string, object metav1.Object) scheduleKey {
	return scheduleKey{kind, controller.Key{Namespace: object.GetNamespace(), Name: object.GetName()}}
}
