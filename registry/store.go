package registry

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"sync"

	"github.com/distribution/distribution/v3"
	"github.com/distribution/distribution/v3/configuration"
	"github.com/distribution/distribution/v3/registry/handlers"
	"github.com/distribution/distribution/v3/registry/storage"
	"github.com/distribution/distribution/v3/registry/storage/driver"
	"github.com/distribution/distribution/v3/registry/storage/driver/filesystem"
	"github.com/distribution/reference"
	"github.com/opencontainers/go-digest"
)

// store is distribution's registry on a directory: the handler that serves the protocol, and the same content for us to look into.
type store struct {
	http.Handler
	content  distribution.Namespace
	driver   driver.StorageDriver
	shutdown func() error
}

// lazyStore opens the store at its first use.
type lazyStore struct {
	mu   sync.Mutex
	open func() (*store, error)
	made *store
}

func lazy(open func() (*store, error)) *lazyStore { return &lazyStore{open: open} }

// get opens the store, or tries again if that did not work before.
func (l *lazyStore) get() (*store, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.made != nil {
		return l.made, nil
	}
	made, err := l.open()
	l.made = made
	return made, err
}

func (l *lazyStore) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.made != nil {
		_ = l.made.shutdown()
		l.made = nil
	}
}

// openStore opens a directory. The key stays secret and makes the states of uploads unforgeable; with the same key an upload goes on after a restart.
func openStore(ctx context.Context, dir string, readOnly bool, key []byte) (*store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make directory of registry: %w", err)
	}
	files, err := filesystem.FromParameters(map[string]any{"rootdirectory": dir})
	if err != nil {
		return nil, fmt.Errorf("open directory of registry: %w", err)
	}
	content, err := storage.NewRegistry(ctx, files, storage.EnableDelete)
	if err != nil {
		return nil, fmt.Errorf("open registry: %w", err)
	}
	secret := sha256.Sum256(append([]byte("uploads of the registry\n"), key...))
	settings := &configuration.Configuration{
		Storage: configuration.Storage{
			"filesystem":  {"rootdirectory": dir},
			"delete":      {"enabled": true},
			"redirect":    {"disable": true},
			"maintenance": {"readonly": map[any]any{"enabled": readOnly}},
		},
		HTTP: configuration.HTTP{Secret: hex.EncodeToString(secret[:])},
	}
	// An index may name platforms that nobody pushed here.
	settings.Validation.Manifests.Indexes.Platforms = "none"
	app := handlers.NewApp(ctx, settings)
	return &store{Handler: app, content: content, driver: files, shutdown: app.Shutdown}, nil
}

// repository opens a repository of the store.
func (s *store) repository(ctx context.Context, name string) (distribution.Repository, error) {
	named, err := reference.WithName(name)
	if err != nil {
		return nil, fmt.Errorf("read name of repository %q: %w", name, err)
	}
	return s.content.Repository(ctx, named)
}

// hasBlob says whether a repository holds a blob.
func (s *store) hasBlob(ctx context.Context, name string, id digest.Digest) bool {
	repository, err := s.repository(ctx, name)
	if err != nil {
		return false
	}
	_, err = repository.Blobs(ctx).Stat(ctx, id)
	return err == nil
}

// blob reads a small blob of a repository.
func (s *store) blob(ctx context.Context, name string, id digest.Digest) ([]byte, error) {
	repository, err := s.repository(ctx, name)
	if err != nil {
		return nil, err
	}
	return repository.Blobs(ctx).Get(ctx, id)
}
