package registry

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"github.com/distribution/distribution/v3"
	"github.com/distribution/distribution/v3/configuration"
	"github.com/distribution/distribution/v3/registry/handlers"
	"github.com/distribution/distribution/v3/registry/storage"
	"github.com/distribution/distribution/v3/registry/storage/driver"
	"github.com/distribution/distribution/v3/registry/storage/driver/factory"
	"github.com/distribution/reference"
	"github.com/opencontainers/go-digest"
)

// store is distribution's registry: its HTTP handler, and access to the stored content.
type store struct {
	http.Handler
	content  distribution.Namespace
	driver   driver.StorageDriver
	shutdown func() error
	readOnly bool
	files    bool // true if blobs are files and pulls send no notifications
}

// lazyStore opens the store on first use.
type lazyStore struct {
	mu    sync.Mutex
	open  func() (*store, error)
	store *store
}

func lazy(open func() (*store, error)) *lazyStore { return &lazyStore{open: open} }

// get returns the store. The first call opens the store; after an error, the next call retries.
func (l *lazyStore) get() (*store, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.store != nil {
		return l.store, nil
	}
	store, err := l.open()
	l.store = store
	return store, err
}

// isOpen reports whether the store was opened.
func (l *lazyStore) isOpen() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.store != nil
}

func (l *lazyStore) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.store != nil {
		_ = l.store.shutdown()
		l.store = nil
	}
}

// openStore opens the storage in the configuration and creates the configured handler.
func openStore(ctx context.Context,
	settings *configuration.Configuration) (file *store, err error) {
	if err := prepareStorage(settings.Storage); err != nil {
		return nil, err
	}
	registerS3()
	files, err := factory.Create(ctx, settings.Storage.Type(), settings.Storage.Parameters())
	if err != nil {
		return nil, fmt.Errorf("open storage %q of registry: %w", settings.Storage.Type(), err)
	}
	if settings.Storage.Type() == "filesystem" {
		files = directories{files}
	}
	if urls := &settings.Validation.Manifests.URLs; len(urls.Allow)+len(urls.Deny) == 0 {
		urls.Allow = []string{"^https?://"}
	}
	content, err := storage.NewRegistry(ctx, files, storage.EnableDelete)
	if err != nil {
		return nil, fmt.Errorf("open registry: %w", err)
	}
	defer func() {
		if problem := recover(); problem != nil { // NewApp panics if a setting is invalid
			file, err = nil, fmt.Errorf("set up registry: %v", problem)
		}
	}()
	app := handlers.NewApp(ctx, settings)
	return &store{
		Handler: app, content: content, driver: files, shutdown: app.Shutdown,
		readOnly: readOnly(settings.Storage), files: settings.Storage.Type() == "filesystem" && len(settings.Notifications.Endpoints) == 0,
	}, nil
}

// repository opens a repository in the store.
func (s *store) repository(ctx context.Context, name string) (distribution.Repository, error) {
	ref, err := reference.WithName(name)
	if err != nil {
		return nil, fmt.Errorf("read name of repository %q: %w", name, err)
	}
	return s.content.Repository(ctx, ref)
}

// hasBlob reports whether a repository contains a blob.
func (s *store) hasBlob(ctx context.Context, name string, id digest.Digest) bool {
	repository, err := s.repository(ctx, name)
	if err != nil {
		return false
	}
	_, err = repository.Blobs(ctx).Stat(ctx, id)
	return err == nil
}

// smallBlob reads a blob from a repository. It returns an error if the blob has more than maximum
// bytes.
func (s *store) smallBlob(ctx context.Context, name string, id digest.Digest,
	maximum int64) ([]byte, error) {
	repository, err := s.repository(ctx, name)
	if err != nil {
		return nil, err
	}
	desc, err := repository.Blobs(ctx).Stat(ctx, id)
	if err != nil {
		return nil, err
	}
	if desc.Size > maximum {
		return nil, fmt.Errorf("blob %q has %d bytes, but the limit is %d", id, desc.Size, maximum)
	}
	return repository.Blobs(ctx).Get(ctx, id)
}

// hasManifest reports whether a repository contains a manifest.
func (s *store) hasManifest(ctx context.Context, name string, id digest.Digest) bool {
	repository, err := s.repository(ctx, name)
	if err != nil {
		return false
	}
	manifests, err := repository.Manifests(ctx)
	if err != nil {
		return false
	}
	exists, err := manifests.Exists(ctx, id)
	return exists && err == nil
}

// manifest reads a manifest from a repository.
func (s *store) manifest(ctx context.Context, name string,
	id digest.Digest) (mediaType string, content []byte, err error) {
	repository, err := s.repository(ctx, name)
	if err != nil {
		return "", nil, err
	}
	manifests, err := repository.Manifests(ctx)
	if err != nil {
		return "", nil, err
	}
	manifest, err := manifests.Get(ctx, id)
	if err != nil {
		return "", nil, err
	}
	return manifest.Payload()
}
