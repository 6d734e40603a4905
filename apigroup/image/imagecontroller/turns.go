package imagecontroller

import (
	"sync"
	"time"
)

// waitPeriod is how long a project counts as waiting after a request. Its streams repeat the
// request every postponeDelay.
const waitPeriod = postponeDelay * 3 / 2

// turns lets projects take turns in scheduled imports, whose rate is limited. Otherwise a project
// with thousands of streams would request so many imports that others get none.
type turns struct {
	mu sync.Mutex
	// asked and served contain the times of the last rejected and the last accepted request of each
	// project.
	asked, served map[string]time.Time
}

// take reports whether a project gets the next import: accept returns true, and no waiting project
// had its last import earlier.
func (t *turns) take(project string, now time.Time, accept func() bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.asked == nil {
		t.asked, t.served = map[string]time.Time{}, map[string]time.Time{}
	}
	t.asked[project] = now
	for _, times := range []map[string]time.Time{t.asked, t.served} {
		for other, at := range times {
			if now.Sub(at) > waitPeriod {
				delete(times, other)
			}
		}
	}
	for other := range t.asked {
		if t.served[other].Before(t.served[project]) {
			return false
		}
	}
	if !accept() {
		return false
	}
	delete(t.asked, project)
	t.served[project] = now
	return true
}
