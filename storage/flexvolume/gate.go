package flexvolume

import (
	"context"
	"path/filepath"
	"sync"
)

// gate bounds the calls of one driver: one at a time for a volume, and so many at all. It belongs to the driver's name and outlives its versions.
type gate struct {
	slots chan struct{}

	mu      sync.Mutex
	volumes map[string]*turn
	// identities tell which volume a directory or a volume name is of, for the operations that are given nothing else.
	identities map[string]string
}

// turn is the queue of one volume: a channel with room for one, and how many hold or want it.
type turn struct {
	free    chan struct{}
	waiting int
}

func newGate(concurrency int) *gate {
	if concurrency <= 0 {
		concurrency = defaultConcurrency
	}
	return &gate{
		slots:      make(chan struct{}, concurrency),
		volumes:    map[string]*turn{},
		identities: map[string]string{},
	}
}

// enter waits for the volume's turn and for a slot; leave must be called after a nil error. An id of "" is no volume.
func (g *gate) enter(ctx context.Context, id string) (leave func(), err error) {
	release := func() {}
	if id != "" {
		if release, err = g.take(ctx, id); err != nil {
			return nil, err
		}
	}
	select {
	case g.slots <- struct{}{}:
		return func() { <-g.slots; release() }, nil
	case <-ctx.Done():
		release()
		return nil, context.Cause(ctx)
	}
}

// take waits for the volume's turn.
func (g *gate) take(ctx context.Context, id string) (release func(), err error) {
	g.mu.Lock()
	queue := g.volumes[id]
	if queue == nil {
		queue = &turn{free: make(chan struct{}, 1)}
		g.volumes[id] = queue
	}
	queue.waiting++
	g.mu.Unlock()

	forget := func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if queue.waiting--; queue.waiting == 0 {
			delete(g.volumes, id)
		}
	}
	select {
	case queue.free <- struct{}{}:
		return func() { <-queue.free; forget() }, nil
	case <-ctx.Done():
		forget()
		return nil, context.Cause(ctx)
	}
}

// remember notes that place, a directory or a name, is of the volume id.
func (g *gate) remember(place, id string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if place != "" {
		g.identities[place] = id
	}
}

// forget drops what remember noted.
func (g *gate) forget(place string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.identities, place)
}

// identify is the volume of place; after a restart it is the last part of the path, which is the name of most volumes.
func (g *gate) identify(place string) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if id, known := g.identities[place]; known {
		return id
	}
	return filepath.Base(place)
}
