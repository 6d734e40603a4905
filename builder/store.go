package builder

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	buildv1 "github.com/openshift/api/build/v1"
	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/slipway-platform/slipway/builder/engine"
	"github.com/slipway-platform/slipway/internal/atomicfile"
)

// store is the engine's directory. A store on the node contains layers and sources from earlier
// builds of the same build configuration. Only one build uses it at a time.
//
//	<dir>/lock    locked by the build that uses the store
//	<dir>/whole   the platform's version; missing while an engine uses the store. Without it, the
//	              store is unclean, and the next build deletes it
//	<dir>/engine  the root directory of the engine
type store struct {
	dir  string
	lock *os.File // nil if the store is only for this build
	// hasLayers means that the store contains layers from earlier builds.
	hasLayers bool
}

// lockTimeout is the maximum time that a build waits for the previous build, which prunes the store
// after it has reported its result.
const lockTimeout = 20 * time.Second

// maxCacheBytes is the maximum size of a store between builds, in bytes. maxUnusedAge is the time
// after which unused layers and sources are deleted.
const maxCacheBytes, maxUnusedAge = 8 << 30, 14 * 24 * time.Hour

// openStore opens the store on the node. If the node has no store, or if another build uses it,
// openStore returns a store that only this build uses.
func (r *run) openStore(ctx context.Context) *store {
	private := &store{dir: r.Work}
	if r.Cache == "" {
		return private
	}
	lock, err := os.OpenFile(filepath.Join(r.Cache, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	// The directory does not exist if the build has no build configuration. It is read-only if the
	// disk is full.
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.EROFS) {
		return private
	}
	if err == nil {
		err = r.lock(ctx, lock)
	}
	s := &store{dir: r.Cache, lock: lock}
	if err == nil {
		s.hasLayers, err = s.acquire(r.Variable("ORIGIN_VERSION"))
	}
	if err != nil {
		fmt.Fprintf(r.Out, "warning: cannot use layers of earlier builds: %v\n", err)
		_ = lock.Close() // if lock is nil, Close has no effect
		return private
	}
	return s
}

// lock locks the file. A build whose configuration has the Parallel run policy does not wait for
// other builds.
func (r *run) lock(ctx context.Context, file *os.File) error {
	timeout := lockTimeout
	if r.Build.Labels[buildv1.BuildRunPolicyLabel] == string(buildv1.BuildRunPolicyParallel) {
		timeout = 0
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(context.Context) (bool, error) {
		return unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil, nil
	})
	if err != nil {
		return errors.New("another build is using them")
	}
	return nil
}

// acquire prepares the store for this build. It deletes the layers if the store is unclean or was
// written by another version.
func (s *store) acquire(version string) (hasLayers bool, err error) {
	data, err := os.ReadFile(s.cleanMark())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return false, err
	}
	if hasLayers = err == nil && string(data) == version; !hasLayers {
		if err := os.RemoveAll(s.root()); err != nil {
			return false, err
		}
	}
	if err := os.Remove(s.cleanMark()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return false, err
	}
	// Sync the directory, so that the mark does not reappear in a changed store after a power loss.
	return hasLayers, atomicfile.SyncFolder(s.dir)
}

func (s *store) cleanMark() string { return filepath.Join(s.dir, "whole") }

func (s *store) root() string { return filepath.Join(s.dir, "engine") }

// release prunes the store and marks it as clean for the next build. If hasSecrets is true, it
// deletes all sources. The process holds the lock until it exits, because the engine keeps files in
// the store open.
func (s *store) release(ctx context.Context, e *engine.Engine, version string, hasSecrets bool) error {
	if s.lock == nil {
		return e.Close()
	}
	err := e.Prune(ctx, maxUnusedAge, maxCacheBytes, hasSecrets)
	if err = errors.Join(err, e.Close()); err != nil {
		return err // the next build deletes a store without the mark
	}
	dir, err := os.Open(s.dir)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := unix.Syncfs(int(dir.Fd())); err != nil {
		return err
	}
	return os.WriteFile(s.cleanMark(), []byte(version), 0o600)
}
