package registry

import (
	"strings"
	"sync"
)

// source is the location of an image or of a blob.
type source struct {
	// repository is a repository in this registry, `<project>/<stream>`. It is "" if the content is
	// in another registry.
	repository string
	// remote is the registry and repository that contain the content if the content is in another
	// registry. insecure means that the registry's certificate is not verified.
	remote   string
	insecure bool
}

// maxSources is the maximum number of cache entries. An entry uses about 200 bytes.
const maxSources = 10000

// sources caches the locations of blobs in served manifests, because clients request these blobs
// next. A cache miss costs a request to the API server.
type sources struct {
	mu     sync.Mutex
	byBlob map[blobOf]source
}

// blobOf identifies a blob in the same way as a client's request.
type blobOf struct{ repository, digest string }

func newSources() *sources { return &sources{byBlob: map[blobOf]source{}} }

func (s *sources) get(blob blobOf) (source, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	source, ok := s.byBlob[blob]
	return source, ok
}

func (s *sources) add(repository string, digests []string, at source) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.byBlob)+len(digests) > maxSources {
		clear(s.byBlob)
	}
	for _, digest := range digests {
		s.byBlob[blobOf{repository, digest}] = at
	}
}

// forget removes the entries for a project's repositories.
func (s *sources) forget(project string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for blob := range s.byBlob {
		if strings.HasPrefix(blob.repository, project+"/") {
			delete(s.byBlob, blob)
		}
	}
}
