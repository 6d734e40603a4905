package registry

import (
	"context"
	"fmt"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/distribution/distribution/v3/registry/storage/driver"
	"github.com/opencontainers/go-digest"

	"github.com/slipway-platform/slipway/internal/diskspace"
)

// usage counts the bytes that projects use in the registry: each blob once, and uploads in
// progress. A project's first push counts the project's content; later pushes add to the count. The
// additions count repeated blobs twice and ignore removals, so a project is recounted before a push
// is rejected.
type usage struct {
	mu       sync.Mutex
	projects map[string]*projectUsage
}

type projectUsage struct {
	mu        sync.Mutex
	bytes     int64
	countTime time.Time
}

// recountInterval is the minimum time between two recounts of a project that has reached its quota.
const recountInterval = 5 * time.Second

func newUsage() *usage { return &usage{projects: map[string]*projectUsage{}} }

func (u *usage) of(project string) *projectUsage {
	u.mu.Lock()
	defer u.mu.Unlock()
	p := u.projects[project]
	if p == nil {
		p = &projectUsage{}
		u.projects[project] = p
	}
	return p
}

// forget drops a project's count. The next use recounts the content.
func (u *usage) forget(project string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.projects, project)
}

// add adds bytes, which can be negative, to a project's count.
func (u *usage) add(project string, bytes int64) {
	p := u.of(project)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bytes += bytes
}

// take adds bytes to a project's count. If the count would exceed the quota, take returns a
// refusal.
func (u *usage) take(ctx context.Context, store *store, project string, bytes, quota int64) error {
	p := u.of(project)
	p.mu.Lock()
	defer p.mu.Unlock()
	if quota == Unlimited {
		p.bytes += bytes
		return nil
	}
	if p.countTime.IsZero() || p.bytes+bytes > quota && time.Since(p.countTime) > recountInterval {
		count, err := store.bytesOf(ctx, project)
		if err != nil {
			return fmt.Errorf("measure content of project %q in the registry: %w", project, err)
		}
		p.bytes, p.countTime = count, time.Now()
	}
	if p.bytes+bytes > quota {
		return &refusal{message: fmt.Sprintf("project %q has %s in the registry, but its quota is %s; remove tags and prune images, or ask an administrator of the cluster for a larger quota "+
			"(annotation %s of the namespace)", project, diskspace.Readable(p.bytes), diskspace.Readable(quota), QuotaAnnotation)}
	}
	p.bytes += bytes
	return nil
}

// bytesOf counts the bytes that a project uses.
func (s *store) bytesOf(ctx context.Context, project string) (total int64, err error) {
	blobs := map[digest.Digest]bool{}
	err = s.driver.Walk(ctx, path.Join(repositoriesDir, project), func(file driver.FileInfo) error {
		at := file.Path()
		switch {
		case file.IsDir():
			if path.Base(path.Dir(at)) == uploadsDir {
				total += entryBytes
			}
		case upload(at) != "":
			total += file.Size()
		case path.Base(at) == linkFile && (strings.Contains(at, "/"+layersDir+"/") || strings.Contains(at, "/"+revisionsDir+"/")):
			id, err := digestOfPath(path.Dir(at))
			if err != nil {
				return nil
			}
			if id.Algorithm() != digest.Canonical {
				id = s.target(ctx, at)
			}
			blobs[id] = true
		}
		return nil
	})
	if err != nil && !missing(err) {
		return 0, err
	}
	for id := range blobs {
		if id.Validate() != nil {
			continue
		}
		total += entryBytes
		if blob, err := s.driver.Stat(ctx, blobPath(id)); err == nil {
			total += blob.Size()
		}
	}
	return total, nil
}

// target returns the digest that a link refers to, or "" if the link cannot be read.
func (s *store) target(ctx context.Context, link string) digest.Digest {
	content, err := s.driver.GetContent(ctx, link)
	if err != nil {
		return ""
	}
	return digest.Digest(content)
}
