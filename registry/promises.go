package registry

import (
	"sync"
	"time"

	"github.com/opencontainers/go-digest"
)

// promises are the blobs of repositories on which a push relies until its manifest arrives: the
// registry reported that it has them, or the client uploaded them. Garbage collection keeps these
// blobs for uploadAge. The zero value has no promises.
type promises struct {
	mu    sync.Mutex
	blobs map[digest.Digest]map[string]time.Time // by repository; the time of the promise
}

// make promises a blob of a repository. It waits for a removal in progress, so that the caller must
// look for the blob afterwards. withdraw takes a new promise back.
func (p *promises) make(repository string, id digest.Digest) (withdraw func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.blobs == nil {
		p.blobs = map[digest.Digest]map[string]time.Time{}
	}
	if p.blobs[id] == nil {
		p.blobs[id] = map[string]time.Time{}
	}
	_, exists := p.blobs[id][repository]
	p.blobs[id][repository] = time.Now()
	return func() {
		if !exists { // otherwise it is the promise of another push, too
			p.drop(repository, id)
		}
	}
}

// drop ends the promises of blobs, for instance because a manifest refers to them.
func (p *promises) drop(repository string, blobs ...digest.Digest) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range blobs {
		p.remove(id, repository)
	}
}

func (p *promises) remove(id digest.Digest, repository string) {
	delete(p.blobs[id], repository)
	if len(p.blobs[id]) == 0 {
		delete(p.blobs, id)
	}
}

// forget ends the promises for which ended returns true.
func (p *promises) forget(ended func(repository string, promised time.Time) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, repositories := range p.blobs {
		for repository, promised := range repositories {
			if ended(repository, promised) {
				p.remove(id, repository)
			}
		}
	}
}

// unless removes a blob, unless it is promised to a repository, or to any if repository is empty.
// promised reports whether it is.
func (p *promises) unless(repository string, id digest.Digest, remove func() error) (promised bool, err error) {
	if p == nil {
		return false, remove()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, start := range p.blobs[id] {
		if (repository == "" || name == repository) && time.Since(start) < uploadAge {
			return true, nil
		}
	}
	return false, remove()
}
