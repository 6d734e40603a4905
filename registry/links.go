package registry

import (
	"context"
	"errors"
	"path"

	"github.com/distribution/distribution/v3"
	"github.com/distribution/distribution/v3/registry/storage/driver"
	"github.com/opencontainers/go-digest"
)

// Layout of distribution's directories, and the directory for referrers.
const (
	rootDir         = "/docker/registry/v2"
	repositoriesDir = rootDir + "/repositories"
	blobsDir        = rootDir + "/blobs"

	layersDir    = "_layers"
	revisionsDir = "_manifests/revisions"
	uploadsDir   = "_uploads"
	referrersDir = "_referrers" // contains <subject>/<referrer>
	linkFile     = "link"
)

// link is a layer or a manifest in a repository.
type link struct {
	// name is the digest in the repository, and id is the digest in the storage. They differ if a
	// client uses an algorithm other than sha256.
	name, id digest.Digest
}

// linkDir returns the directory that records a layer or a manifest in a repository. kind is
// layersDir or revisionsDir.
func linkDir(repository, kind string, name digest.Digest) string {
	return path.Join(repositoriesDir, repository, kind, digestPath(name))
}

func digestPath(id digest.Digest) string { return path.Join(id.Algorithm().String(), id.Encoded()) }

// digestOfPath returns the digest at the end of a path. It is the inverse of digestPath.
func digestOfPath(file string) (digest.Digest, error) {
	return digest.Parse(path.Base(path.Dir(file)) + ":" + path.Base(file))
}

// links lists a repository's layers or manifests. kind is layersDir or revisionsDir.
func (s *store) links(ctx context.Context, repository, kind string) (all []link, err error) {
	err = s.driver.Walk(ctx, path.Join(repositoriesDir, repository, kind), func(file driver.FileInfo) error {
		if file.IsDir() || path.Base(file.Path()) != linkFile {
			return nil
		}
		name, err := digestOfPath(path.Dir(file.Path()))
		if err != nil {
			return nil // the file is not a link to content
		}
		content, err := s.driver.GetContent(ctx, file.Path())
		if missing(err) {
			return nil
		}
		if err != nil {
			return err
		}
		if id, err := digest.Parse(string(content)); err == nil {
			all = append(all, link{name, id})
		}
		return nil
	})
	if missing(err) {
		err = nil
	}
	return all, err
}

// referrers returns a repository's referrers, keyed by subject.
func (s *store) referrers(ctx context.Context,
	repository string) (bySubject map[digest.Digest][]digest.Digest, err error) {
	bySubject = map[digest.Digest][]digest.Digest{}
	err = s.driver.Walk(ctx, path.Join(repositoriesDir, repository, referrersDir), func(file driver.FileInfo) error {
		if file.IsDir() || path.Base(file.Path()) != linkFile {
			return nil
		}
		id, err := digestOfPath(path.Dir(file.Path()))
		if err != nil {
			return nil
		}
		subject, err := digestOfPath(path.Join(file.Path(), "../../.."))
		if err != nil {
			return nil
		}
		bySubject[subject] = append(bySubject[subject], id)
		return nil
	})
	if missing(err) {
		err = nil
	}
	return bySubject, err
}

// missing reports whether an error means that a file, repository or manifest does not exist.
func missing(err error) bool {
	return errors.As(err, new(driver.PathNotFoundError)) || errors.As(err, new(distribution.ErrRepositoryUnknown)) ||
		errors.As(err, new(distribution.ErrManifestUnknownRevision))
}
