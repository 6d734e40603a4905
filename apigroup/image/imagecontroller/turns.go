package imagecontroller

import (
	"sync"
	"time"
)

// waitPeriod is how long an owner of projects is considered to be waiting after a rejected request.
// It is longer than postponeDelay, which is the interval at which the owner's streams repeat the
// request.
const waitPeriod = postponeDelay * 3 / 2

// turns lets the owners of projects take turns with scheduled imports, whose rate is limited.
// Without turns, a user with thousands of streams or projects could use up the rate limit, and the
// imports of other users would never run.
type turns struct {
	mu sync.Mutex
	// waiting maps each owner to the time of the last rejected request. served maps each owner to the
	// time of the last accepted request.
	waiting, served map[string]time.Time
}

// take reports whether to import an owner's stream now. It returns false if accept returns false,
// or if another waiting owner's last import is earlier than this owner's.
func (t *turns) take(owner string, now time.Time, accept func() bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.waiting == nil {
		t.waiting, t.served = map[string]time.Time{}, map[string]time.Time{}
	}
	t.waiting[owner] = now
	for _, times := range []map[string]time.Time{t.waiting, t.served} {
		for other, at := range times {
			if now.Sub(at) > waitPeriod {
				delete(times, other)
			}
		}
	}
	for other := range t.waiting {
		if t.served[other].Before(t.served[owner]) {
			return false
		}
	}
	if !accept() {
		return false
	}
	delete(t.waiting, owner)
	t.served[owner] = now
	return true
}
