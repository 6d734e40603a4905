package registry

import (
	"sync"
	"time"

	"github.com/opencontainers/go-digest"
)

// promises contains the repository blobs that a push relies on until its manifest arrives. Either
// the registry has reported that the blobs exist, or the client has uploaded them. Garbage
// collection keeps them for uploadAge. The zero value is empty.
type promises struct {
	mu    sync.Mutex
	blobs map[digest.Digest]map[string]time.Time // times of promises, by digest and repository
}

// make promises to keep a blob in a repository. It waits until a removal that is in progress has
// finished, so the caller must check afterwards whether the blob still exists. withdraw ends the
// promise, unless the promise already existed.
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
		if !exists { // otherwise, another push also relies on the promise
			p.drop(repository, id)
		}
	}
}

// drop ends the promises for blobs in a repository, for example because a manifest now refers to
// them.
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

// unless calls remove unless the blob is promised to a repository. If repository is empty, unless
// checks for a promise to any repository. promised reports whether a promise prevents the removal.
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
