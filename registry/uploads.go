package registry

import (
	"net/http"
	"sync"
	"time"
)

// uploads records when clients last wrote to uploads, because some kinds of storage do not record
// these times.
type uploads struct {
	mu    sync.Mutex
	start time.Time
	last  map[string]time.Time
}

func newUploads() *uploads { return &uploads{start: time.Now(), last: map[string]time.Time{}} }

// uploadOf returns the ID of the upload that a request writes to, or "" if the request starts an
// upload.
func uploadOf(r *http.Request) string {
	t, _ := routeOf(r)
	return t.upload
}

// touch records that a client is writing to an upload.
func (u *uploads) touch(id string) {
	if id == "" {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.last[id] = time.Now()
}

// lastWrite returns the time when a client last wrote to an upload. If no write is recorded, it
// returns the time at which this process started.
func (u *uploads) lastWrite(id string) time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	last, ok := u.last[id]
	if !ok {
		return u.start
	}
	return last
}

// forget removes the records of uploads whose last write was before the given time.
func (u *uploads) forget(before time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for id, last := range u.last {
		if last.Before(before) {
			delete(u.last, id)
		}
	}
}
