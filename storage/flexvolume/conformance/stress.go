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

// abreast is how many volumes are used at the same time.
const abreast = 4

// parallel leads several volumes through their lives at the same time and looks whether they are really different ones.
func (c *checker) parallel(ctx context.Context) {
	lives, problems := make([]*life, abreast), make([]error, abreast)
	each := func(do func(i int) error) {
		var all sync.WaitGroup
		for i := range lives {
			all.Go(func() {
				if problems[i] == nil {
					problems[i] = do(i)
				}
			})
		}
		all.Wait()
	}
	contents := make([]string, abreast)
	for i := range lives {
		lives[i], contents[i] = c.newLife(nil), rand.Text()
	}
	each(func(i int) error { return lives[i].up(ctx) })
	each(func(i int) error {
		return os.WriteFile(filepath.Join(lives[i].dir, "check"), []byte(contents[i]), 0o600)
	})
	shared := false
	each(func(i int) error {
		found, err := os.ReadFile(filepath.Join(lives[i].dir, "check"))
		shared = shared || err == nil && string(found) != contents[i]
		return err
	})
	var ends sync.WaitGroup
	downs := make([]error, abreast)
	for i := range lives {
		ends.Go(func() { downs[i] = lives[i].down(ctx) })
	}
	ends.Wait()
	c.judge("parallel", errors.Join(slices.Concat(problems, downs)...), Wrong, fmt.Sprintf("%d volumes are used at the same time", abreast),
		"let nothing that calls for different volumes share, such as a file of a fixed name, be in the way; take a lock (flock) where it must")
	c.distinct(lives, shared)
}

// distinct looks at what volumes of different names have in common.
func (c *checker) distinct(lives []*life, shared bool) {
	names := map[string]bool{}
	for _, l := range lives {
		names[l.name] = true
	}
	same := shared || len(names) < len(lives)
	perVolume := false
	for _, value := range c.Options {
		perVolume = perVolume || strings.Contains(value, "{volume}")
	}
	switch {
	case !same:
		c.result("distinct", OK, "volumes of different names are different volumes", "")
	case len(c.Options) > 0 && !perVolume:
		c.result("distinct", NotTried, "volumes with the same options are the same volume", "check with {volume} in the option that names the volume")
	default:
		c.result("distinct", Wrong, "volumes of different names have the same name in the storage, or the same content",
			"make the volume's name, kubernetes.io/pvOrVolumeName, or an option part of what getvolumename answers and of where the data is")
	}
}

// killing leads volumes through lives in which every operation is killed once, at any moment, and then repeated.
func (c *checker) killing(ctx context.Context) {
	type tally struct {
		killed          int
		problem, little error
	}
	tallies := map[flexvolume.Operation]*tally{}
	ops := slices.DeleteFunc(slices.Concat(c.ups(), c.downs()), func(op flexvolume.Operation) bool { return op == flexvolume.OpGetVolumeName })
	for _, op := range ops {
		tallies[op] = &tally{}
	}
	for range c.Kills {
		l := c.newLife(nil)
		if c.caps.Attach {
			l.call(ctx, flexvolume.OpGetVolumeName, 0)
		}
		for _, op := range ops {
			t := tallies[op]
			if t.problem != nil || c.driver.Lacks(op) {
				if _, err := l.do(ctx, op); err != nil {
					break
				}
				continue
			}
			at := c.moment(op)
			if l.call(ctx, op, at).Killed {
				t.killed++
			}
			if _, err := l.do(ctx, op); err != nil {
				err = fmt.Errorf("after it was killed at %s, it does not succeed again: %w", brief(at), err)
				if recovered := l.recover(ctx, op); recovered != nil {
					t.problem = err
					break
				}
				t.little = err
			}
		}
		_ = l.down(ctx)
	}
	for _, op := range ops {
		t, check := tallies[op], "killed-"+string(op)
		switch {
		case t.problem != nil:
			c.result(check, Wrong, t.problem.Error(), "look first for what an earlier call has done already, write files under another name and rename them, and go on from there")
		case t.little != nil:
			c.result(check, Risk, t.little.Error()+"; it does after the operation that undoes it, which Slipway calls and Kubernetes does not",
				"look first for what an earlier call has done already, and go on from there")
		case t.killed == 0:
			c.result(check, NotTried, "it lacks the operation, or is too fast to be killed", "")
		default:
			c.result(check, OK, fmt.Sprintf("killed in %d of %d calls, at any moment, it succeeds when it is repeated", t.killed, c.Kills), "")
		}
	}
}

// recover undoes what a killed operation left, as Slipway does, and does it again.
func (l *life) recover(ctx context.Context, op flexvolume.Operation) error {
	reverse := map[flexvolume.Operation]flexvolume.Operation{
		flexvolume.OpMount: flexvolume.OpUnmount, flexvolume.OpMountDevice: flexvolume.OpUnmountDevice,
	}[op]
	if reverse == "" {
		return errors.New("nothing undoes it")
	}
	if _, err := l.do(ctx, reverse); err != nil {
		return err
	}
	_, err := l.do(ctx, op)
	return err
}

// moment is a random time within a usual call.
func (c *checker) moment(op flexvolume.Operation) time.Duration {
	usual := c.median(op)
	if usual == 0 {
		usual = 20 * time.Millisecond
	}
	return time.Millisecond/2 + time.Duration(c.random.Int64N(int64(usual)))
}

// expand checks the operations that make a volume larger, where the driver has them.
func (c *checker) expand(ctx context.Context) {
	l := c.newLife(nil)
	if err := l.up(ctx); err != nil {
		_ = l.down(ctx)
		c.result("expand", NotTried, err.Error(), "")
		return
	}
	at := l.dir
	if c.caps.Attach {
		at = l.staged
	} else {
		l.staged = l.dir
	}
	before := capacity(at)
	grown := c.expandVolume(ctx, l)
	c.expandFS(ctx, l, grown, func() bool { return capacity(at) > before+before/4 })
	if err := l.down(ctx); err != nil {
		c.result("expand", Wrong, "the expanded volume: "+err.Error(), "let an expanded volume be used like others")
	}
}

func (c *checker) expandVolume(ctx context.Context, l *life) (grown bool) {
	const check = string(flexvolume.OpExpandVolume)
	outcome := l.call(ctx, flexvolume.OpExpandVolume, 0)
	if errors.Is(outcome.Err, flexvolume.ErrNotSupported) {
		c.result(check, NotTried, "it lacks the operation", "")
		return false
	}
	problem := outcome.Err
	if problem == nil && outcome.VolumeNewSize != 0 && outcome.VolumeNewSize < l.newSize {
		problem = fmt.Errorf("it reports Success and a new size of %d bytes, less than the %d asked for", outcome.VolumeNewSize, l.newSize)
	}
	c.judge(check, problem, Wrong, fmt.Sprintf("it succeeds, with a new size of %d bytes", outcome.VolumeNewSize), "answer with a volumeNewSize, in bytes, of at least the third argument")
	if problem != nil {
		return false
	}
	c.judge(check+"-repeated", l.call(ctx, flexvolume.OpExpandVolume, 0).Err, Wrong, "it succeeds again", "let expandvolume succeed for a volume that is large enough already")
	return true
}

func (c *checker) expandFS(ctx context.Context, l *life, grown bool, larger func() bool) {
	const check = string(flexvolume.OpExpandFS)
	outcome := l.call(ctx, flexvolume.OpExpandFS, 0)
	if errors.Is(outcome.Err, flexvolume.ErrNotSupported) {
		did := "it lacks the operation"
		if l.device != "" {
			did += "; Slipway grows ext4, xfs and btrfs without it"
		}
		c.result(check, NotTried, did, "")
		return
	}
	problem := outcome.Err
	if problem == nil && grown && !larger() {
		problem = errors.New("it reports Success, but the file system is not larger")
	}
	c.judge(check, problem, Wrong, "it succeeds", "grow the file system to the size of its device, while it is mounted")
	if problem == nil {
		c.judge(check+"-repeated", l.call(ctx, flexvolume.OpExpandFS, 0).Err, Wrong, "it succeeds again", "let expandfs succeed for a file system that is large enough already")
	}
}

// capacity is the size of the file system at a directory, in bytes.
func capacity(dir string) uint64 {
	var stat unix.Statfs_t
	if unix.Statfs(dir, &stat) != nil {
		return 0
	}
	return stat.Blocks * uint64(stat.Bsize)
}
