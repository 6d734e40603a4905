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

// store is where the engine of a build works. One that its node keeps has the layers and the sources of earlier builds of the same configuration; at any time
// one build has it.
//
//	<dir>/lock     locked by the build that has the store
//	<dir>/whole    the platform's version, while no engine has the store; a store without it was left in the midst of something, and is thrown away
//	<dir>/engine   the engine's
type store struct {
	dir  string
	lock *os.File // nil: the store is the build's own, and ends with it
	// kept says that there is something of earlier builds in it.
	kept bool
}

// turnWithin is how long a build waits for the one before it, which has reported its end and puts its store in order.
const turnWithin = 20 * time.Second

// cached are the most bytes of layers and sources that are kept from one build to the next, and idle how long one that no build has used.
const cached, idle = 8 << 30, 14 * 24 * time.Hour

// openStore opens the store that the node keeps, or one of the build's own where there is none or another build has it.
func (r *run) openStore(ctx context.Context) *store {
	own := &store{dir: r.Work}
	if r.Cache == "" {
		return own
	}
	lock, err := os.OpenFile(filepath.Join(r.Cache, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.EROFS) { // the build has no configuration, or the node no room
		return own
	}
	if err == nil {
		err = r.turn(ctx, lock)
	}
	s := &store{dir: r.Cache, lock: lock}
	if err == nil {
		s.kept, err = s.take(r.Variable("ORIGIN_VERSION"))
	}
	if err != nil {
		fmt.Fprintf(r.Out, "warning: layers of earlier builds are not used: %v\n", err)
		_ = lock.Close() // there may be none
		return own
	}
	return s
}

// turn takes the lock. Builds of one configuration that run together do not wait for each other.
func (r *run) turn(ctx context.Context, lock *os.File) error {
	within := turnWithin
	if r.Build.Labels[buildv1.BuildRunPolicyLabel] == string(buildv1.BuildRunPolicyParallel) {
		within = 0
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	err := wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(context.Context) (bool, error) {
		return unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil, nil
	})
	if err != nil {
		return errors.New("another build has them")
	}
	return nil
}

// take begins to use the store, and says whether it has something of earlier builds. What was left in the midst of something, or by another version, is removed.
func (s *store) take(version string) (kept bool, err error) {
	whole, err := os.ReadFile(s.whole())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return false, err
	}
	if kept = err == nil && string(whole) == version; !kept {
		if err := os.RemoveAll(s.root()); err != nil {
			return false, err
		}
	}
	if err := os.Remove(s.whole()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return false, err
	}
	return kept, atomicfile.SyncFolder(s.dir) // before anything changes: a loss of power must not leave a changed store with its mark
}

func (s *store) whole() string { return filepath.Join(s.dir, "whole") }

func (s *store) root() string { return filepath.Join(s.dir, "engine") }

// leave gives the store to the next build, with no more in it than is kept. secret says that the source had secrets in it, of which nothing stays. The lock ends with the
// process, since not before that the engine lets go of all its files.
func (s *store) leave(ctx context.Context, e *engine.Engine, version string, secret bool) error {
	if s.lock == nil {
		return e.Close()
	}
	err := e.Prune(ctx, idle, cached, secret)
	if err = errors.Join(err, e.Close()); err != nil {
		return err // without its mark it is thrown away
	}
	dir, err := os.Open(s.dir)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := unix.Syncfs(int(dir.Fd())); err != nil {
		return err
	}
	return os.WriteFile(s.whole(), []byte(version), 0o600)
}
