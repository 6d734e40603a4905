package flexvolume

import (
	"context"
	"path/filepath"
	"sync"
)

// callLimiter limits the concurrent calls to one driver: one call per volume, and a maximum in
// total. There is one callLimiter per driver name, which all versions of the driver share.
type callLimiter struct {
	slots chan struct{}

	mu      sync.Mutex
	volumes map[string]*volumeLock
	// volumeIDs maps a directory or a volume name to the volume's ID, for operations that receive
	// only the directory or the name.
	volumeIDs map[string]string
}

// volumeLock is the lock for one volume: a channel with capacity 1, and the number of callers that
// hold the lock or wait for it.
type volumeLock struct {
	slot  chan struct{}
	users int
}

func newCallLimiter(concurrency int) *callLimiter {
	if concurrency <= 0 {
		concurrency = defaultConcurrency
	}
	return &callLimiter{
		slots:     make(chan struct{}, concurrency),
		volumes:   map[string]*volumeLock{},
		volumeIDs: map[string]string{},
	}
}

// acquire waits for the volume's lock and for a slot. The caller must call release unless acquire
// returns an error. If id is empty, no volume is locked.
func (g *callLimiter) acquire(ctx context.Context, id string) (release func(), err error) {
	unlock := func() {}
	if id != "" {
		if unlock, err = g.lockVolume(ctx, id); err != nil {
			return nil, err
		}
	}
	select {
	case g.slots <- struct{}{}:
		return func() { <-g.slots; unlock() }, nil
	case <-ctx.Done():
		unlock()
		return nil, context.Cause(ctx)
	}
}

// lockVolume waits for the volume's lock.
func (g *callLimiter) lockVolume(ctx context.Context, id string) (release func(), err error) {
	g.mu.Lock()
	lock := g.volumes[id]
	if lock == nil {
		lock = &volumeLock{slot: make(chan struct{}, 1)}
		g.volumes[id] = lock
	}
	lock.users++
	g.mu.Unlock()

	drop := func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if lock.users--; lock.users == 0 {
			delete(g.volumes, id)
		}
	}
	select {
	case lock.slot <- struct{}{}:
		return func() { <-lock.slot; drop() }, nil
	case <-ctx.Done():
		drop()
		return nil, context.Cause(ctx)
	}
}

// setVolumeID records the volume ID for place, which is the volume's directory or its name.
func (g *callLimiter) setVolumeID(place, id string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if place != "" {
		g.volumeIDs[place] = id
	}
}

// deleteVolumeID deletes the record that setVolumeID created.
func (g *callLimiter) deleteVolumeID(place string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.volumeIDs, place)
}

// volumeID returns the recorded volume ID for place, which is the volume's directory or its name.
// If there is no record, for example after a restart, volumeID returns the last path element, which
// is the name of most volumes.
func (g *callLimiter) volumeID(place string) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if id, ok := g.volumeIDs[place]; ok {
		return id
	}
	return filepath.Base(place)
}
