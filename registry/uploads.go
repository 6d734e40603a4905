package registry

import (
	"net/http"
	"sync"
	"time"
)

// uploads remembers when clients last wrote to the uploads that are under way: not all storage shows it.
type uploads struct {
	mu    sync.Mutex
	start time.Time
	last  map[string]time.Time
}

func newUploads() *uploads { return &uploads{start: time.Now(), last: map[string]time.Time{}} }

// uploadOf is the ID of the upload that a request writes to, empty if it starts one.
func uploadOf(r *http.Request) string {
	t, _ := routeOf(r)
	return t.upload
}

// touch notes that a client writes to an upload.
func (u *uploads) touch(id string) {
	if id == "" {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.last[id] = time.Now()
}

// written is when a client last wrote to an upload; for one of a former process the time when this one started.
func (u *uploads) written(id string) time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	last, ok := u.last[id]
	if !ok {
		return u.start
	}
	return last
}

// forget drops uploads to which nobody has written since a time.
func (u *uploads) forget(before time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for id, last := range u.last {
		if last.Before(before) {
			delete(u.last, id)
		}
	}
}
