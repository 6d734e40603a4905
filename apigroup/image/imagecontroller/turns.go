package imagecontroller

import (
	"sync"
	"time"
)

// waitPeriod is how long a project is considered to be waiting after a request. The project's
// streams repeat the request every postponeDelay.
const waitPeriod = postponeDelay * 3 / 2

// turns lets projects take turns with scheduled imports, whose rate is limited. Without turns, a
// project with thousands of streams could use up the rate limit, and other projects' imports would
// never run.
type turns struct {
	mu sync.Mutex
	// asked maps each project to the time of its last rejected request. served maps each project to
	// the time of its last accepted request.
	asked, served map[string]time.Time
}

// take reports whether a project is allowed to import now. This requires that accept returns true,
// and that no waiting project's last import is earlier than this project's.
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
