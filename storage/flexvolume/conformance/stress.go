package conformance

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/slipway-platform/slipway/storage/flexvolume"
)

// parallelVolumes is the number of volumes that are used concurrently.
const parallelVolumes = 4

// parallel runs multiple lifecycles concurrently and checks that their volumes are distinct.
func (c *checker) parallel(ctx context.Context) {
	lives, errs := make([]*lifecycle, parallelVolumes), make([]error, parallelVolumes)
	forEach := func(do func(i int) error) {
		var group sync.WaitGroup
		for i := range lives {
			group.Go(func() {
				if errs[i] == nil {
					errs[i] = do(i)
				}
			})
		}
		group.Wait()
	}
	contents := make([]string, parallelVolumes)
	for i := range lives {
		lives[i], contents[i] = c.newLifecycle(nil), rand.Text()
	}
	forEach(func(i int) error { return lives[i].setUp(ctx) })
	forEach(func(i int) error {
		return write(filepath.Join(lives[i].dir, "check"), []byte(contents[i]))
	})
	shared := make([]bool, parallelVolumes)
	forEach(func(i int) error {
		content, err := os.ReadFile(filepath.Join(lives[i].dir, "check"))
		shared[i] = err == nil && string(content) != contents[i]
		if errors.Is(err, os.ErrNotExist) && readOnly(lives[i].dir) {
			return nil
		}
		return err
	})
	var teardowns sync.WaitGroup
	teardownErrs := make([]error, parallelVolumes)
	for i := range lives {
		teardowns.Go(func() { teardownErrs[i] = lives[i].tearDown(ctx) })
	}
	teardowns.Wait()
	c.check("parallel", errors.Join(slices.Concat(errs, teardownErrs)...), Risk, fmt.Sprintf("%d volumes are used at the same time", parallelVolumes),
		"avoid shared state, such as a file with a fixed name, between calls for different volumes; lock it (flock) if it is necessary")
	c.distinctVolumes(lives, slices.Contains(shared, true))
}

// distinctVolumes checks that volumes with different names are different volumes.
func (c *checker) distinctVolumes(lives []*lifecycle, shared bool) {
	names := map[string]bool{}
	for _, l := range lives {
		names[l.name] = true
	}
	identical := shared || len(names) < len(lives)
	perVolume := false
	for _, value := range c.Options {
		perVolume = perVolume || strings.Contains(value, "{volume}")
	}
	switch {
	case !identical:
		c.result("distinct", OK, "volumes with different names are different volumes", "")
	case len(c.Options) > 0 && !perVolume:
		c.result("distinct", NotTried, "volumes with the same options are the same volume", "use {volume} in the option that names the volume")
	default:
		c.result("distinct", Risk, "volumes with different names have the same name in the storage, or the same content",
			"make the response to getvolumename and the location of the data depend on the volume's name, kubernetes.io/pvOrVolumeName, or on an option")
	}
}

// killed runs lifecycles in which each operation is killed once, at a random time, and then
// repeated.
func (c *checker) killed(ctx context.Context) {
	type tally struct {
		killed          int
		problem, little error
	}
	tallies := map[flexvolume.Operation]*tally{}
	ops := slices.DeleteFunc(slices.Concat(c.setupOps(), c.teardownOps()), func(op flexvolume.Operation) bool { return op == flexvolume.OpGetVolumeName })
	for _, op := range ops {
		tallies[op] = &tally{}
	}
	for range c.Kills {
		l := c.newLifecycle(nil)
		if c.caps.Attach {
			l.call(ctx, flexvolume.OpGetVolumeName, 0)
		}
		for _, op := range ops {
			result := tallies[op]
			if result.problem != nil || c.driver.Unsupported(op) {
				if _, err := l.do(ctx, op); err != nil {
					break
				}
				continue
			}
			delay := c.killDelay(op)
			if l.call(ctx, op, delay).Killed {
				result.killed++
			}
			if _, err := l.do(ctx, op); err != nil {
				err = fmt.Errorf("after it was killed at %s, it does not succeed when repeated: %w", milliseconds(delay), err)
				if recovered := l.undoAndRepeat(ctx, op); recovered != nil {
					result.problem = err
					break
				}
				result.little = err
			}
		}
		_ = l.tearDown(ctx)
	}
	for _, op := range ops {
		result, check := tallies[op], "killed-"+string(op)
		switch {
		case result.problem != nil:
			c.result(check, Risk, result.problem.Error(), "first check what an earlier call has already done and continue from there; write files under a temporary name and rename them")
		case result.little != nil:
			c.result(check, Risk, result.little.Error()+"; it succeeds after the reverse operation, which Slipway calls and Kubernetes does not",
				"first check what an earlier call has already done, and continue from there")
		case result.killed == 0:
			c.result(check, NotTried, "it does not support the operation, or is too fast to be killed", "")
		default:
			c.result(check, OK, fmt.Sprintf("killed in %d of %d calls, at random times, it succeeds when repeated", result.killed, c.Kills), "")
		}
	}
}

// undoAndRepeat undoes a killed operation, as Slipway does, then runs it again.
func (l *lifecycle) undoAndRepeat(ctx context.Context, op flexvolume.Operation) error {
	reverse := map[flexvolume.Operation]flexvolume.Operation{
		flexvolume.OpMount: flexvolume.OpUnmount, flexvolume.OpMountDevice: flexvolume.OpUnmountDevice,
	}[op]
	if reverse == "" {
		return errors.New("it has no reverse operation")
	}
	if _, err := l.do(ctx, reverse); err != nil {
		return err
	}
	_, err := l.do(ctx, op)
	return err
}

// killDelay returns a random delay that does not exceed the median duration of the operation's
// calls.
func (c *checker) killDelay(op flexvolume.Operation) time.Duration {
	duration := c.median(op)
	if duration == 0 {
		duration = 20 * time.Millisecond
	}
	return time.Millisecond/2 + time.Duration(c.random.Int64N(int64(duration)))
}

// expand checks the operations that expand a volume, if the driver supports them.
func (c *checker) expand(ctx context.Context) {
	l := c.newLifecycle(nil)
	if err := l.setUp(ctx); err != nil {
		_ = l.tearDown(ctx)
		c.result("expand", NotTried, err.Error(), "")
		return
	}
	dir := l.dir
	if c.caps.Attach {
		dir = l.stagedDir
	} else {
		l.stagedDir = l.dir
	}
	sizeBefore := capacity(dir)
	grown := c.expandVolume(ctx, l)
	c.expandFS(ctx, l, grown, func() bool { return capacity(dir) > sizeBefore+sizeBefore/4 })
	if err := l.tearDown(ctx); err != nil {
		c.result("expand", Risk, "the expanded volume: "+err.Error(), "make an expanded volume usable like other volumes")
	}
}

func (c *checker) expandVolume(ctx context.Context, l *lifecycle) (grown bool) {
	const check = string(flexvolume.OpExpandVolume)
	outcome := l.call(ctx, flexvolume.OpExpandVolume, 0)
	if errors.Is(outcome.Err, flexvolume.ErrNotSupported) {
		c.result(check, NotTried, "it does not support the operation", "")
		return false
	}
	failure := outcome.Err
	if failure == nil && outcome.VolumeNewSize != 0 && outcome.VolumeNewSize < l.newSize {
		failure = fmt.Errorf("it reports Success and a new size of %d bytes, less than the requested %d", outcome.VolumeNewSize, l.newSize)
	}
	c.check(check, failure, Risk, fmt.Sprintf("it succeeds, with a new size of %d bytes", outcome.VolumeNewSize), "return a volumeNewSize, in bytes, of at least the third argument")
	if failure != nil {
		return false
	}
	c.check(check+"-repeated", l.call(ctx, flexvolume.OpExpandVolume, 0).Err, Risk, "it succeeds again", "let expandvolume succeed for a volume that is already large enough")
	return true
}

func (c *checker) expandFS(ctx context.Context, l *lifecycle, grown bool, isLarger func() bool) {
	const check = string(flexvolume.OpExpandFS)
	outcome := l.call(ctx, flexvolume.OpExpandFS, 0)
	if errors.Is(outcome.Err, flexvolume.ErrNotSupported) {
		finding := "it does not support the operation"
		if l.device != "" {
			finding += "; Slipway expands ext4, xfs and btrfs without it"
		}
		c.result(check, NotTried, finding, "")
		return
	}
	failure := outcome.Err
	if failure == nil && grown && !isLarger() {
		failure = errors.New("it reports Success, but the file system is not larger")
	}
	c.check(check, failure, Risk, "it succeeds", "expand the mounted file system to the size of its device")
	if failure == nil {
		c.check(check+"-repeated", l.call(ctx, flexvolume.OpExpandFS, 0).Err, Risk, "it succeeds again", "let expandfs succeed for a file system that is already large enough")
	}
}

// readOnly reports whether the file system at dir is mounted read-only.
func readOnly(dir string) bool {
	var stat unix.Statfs_t
	return unix.Statfs(dir, &stat) == nil && stat.Flags&unix.ST_RDONLY != 0
}

// capacity returns the size of the file system at dir, in bytes.
func capacity(dir string) uint64 {
	var stat unix.Statfs_t
	if unix.Statfs(dir, &stat) != nil {
		return 0
	}
	return stat.Blocks * uint64(stat.Bsize)
}
