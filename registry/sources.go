package registry

import (
	"strings"
	"sync"
)

// source is where an image or a blob of a stream really is.
type source struct {
	// repository is the one of this registry, `<project>/<stream>`; empty for other registries.
	repository string
	// remote is registry and repository of another registry; insecure that its certificate need not be known.
	remote   string
	insecure bool
}

// maxSources bounds the memory of sources; with about 200 bytes each.
const maxSources = 10000

// sources remembers where the blobs are of the manifests that were served, since a client asks for them next. Forgetting one costs a request
// to the API server.
type sources struct {
	mu    sync.Mutex
	known map[blobOf]source
}

// blobOf is a blob as a client asks for it.
type blobOf struct{ repository, digest string }

func newSources() *sources { return &sources{known: map[blobOf]source{}} }

func (s *sources) get(blob blobOf) (source, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, ok := s.known[blob]
	return found, ok
}

func (s *sources) put(repository string, digests []string, at source) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.known)+len(digests) > maxSources {
		clear(s.known)
	}
	for _, digest := range digests {
		s.known[blobOf{repository, digest}] = at
	}
}

// forget drops what is known of the repositories of a project.
func (s *sources) forget(project string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for blob := range s.known {
		if strings.HasPrefix(blob.repository, project+"/") {
			delete(s.known, blob)
		}
	}
}
