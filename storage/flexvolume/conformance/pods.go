package conformance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/slipway-platform/slipway/storage/flexvolume"
)

// readOnly checks that a read-only volume cannot be written.
func (c *checker) readOnly(ctx context.Context) {
	// A volume has content before it is used read-only.
	l := c.newLife(nil)
	problem := errors.Join(l.up(ctx), l.down(ctx))
	if problem == nil {
		l.mounting.ReadOnly = true
		problem = l.up(ctx)
	}
	var writable bool
	if problem == nil {
		writable = os.WriteFile(filepath.Join(l.dir, "check"), nil, 0o600) == nil
	}
	if problem = errors.Join(problem, l.down(ctx)); problem != nil {
		c.result("read-only", Wrong, problem.Error(), "mount a volume with kubernetes.io/readwrite ro as one with rw, but read-only")
		return
	}
	if writable {
		problem = errors.New("a file can be written into a read-only volume")
	}
	c.judge("read-only", problem, Risk, "a read-only volume cannot be written",
		"mount read-only where kubernetes.io/readwrite is ro; containers cannot write all the same, but the storage is not protected")
}

// twoPods checks that two pods of a node can use a volume, and that one does not lose it when the other ends.
func (c *checker) twoPods(ctx context.Context) {
	first := c.newLife(nil)
	problem := first.up(ctx)
	second := first.otherPod()
	if problem == nil {
		_, problem = second.do(ctx, flexvolume.OpMount)
	}
	if problem == nil {
		problem = os.WriteFile(filepath.Join(second.dir, "check"), []byte("second"), 0o600)
	}
	_, ended := first.do(context.WithoutCancel(ctx), flexvolume.OpUnmount)
	problem = errors.Join(problem, ended)
	if problem == nil {
		if content, err := os.ReadFile(filepath.Join(second.dir, "check")); err != nil || string(content) != "second" {
			problem = errors.New("the second pod has lost the volume when the first one ended")
		}
	}
	problem = errors.Join(problem, second.down(ctx))
	c.judge("pods", problem, Wrong, "two pods use the volume, and the second keeps it when the first ends",
		"mount a volume for one pod at a time: unmount ends what its own directory has, and nothing else")
}

// undone checks the operations that undo where there is nothing to undo, as after a crash.
func (c *checker) undone(ctx context.Context) {
	l := c.newLife(nil)
	if c.caps.Attach {
		l.call(ctx, flexvolume.OpGetVolumeName, 0)
	}
	for _, op := range c.downs() {
		verdict, what := Risk, "what was never attached"
		switch op {
		case flexvolume.OpUnmount:
			verdict, what = Wrong, "what is not mounted"
		case flexvolume.OpUnmountDevice:
			what = "a device that is not mounted"
		}
		outcome := l.call(ctx, op, 0)
		if errors.Is(outcome.Err, flexvolume.ErrNotSupported) {
			outcome.Err = nil
		}
		_, _ = os.Remove(l.dir), os.Remove(l.staged)
		c.judge(string(op)+"-undone", outcome.Err, verdict, "it succeeds for "+what,
			"let "+string(op)+" succeed for "+what+": kubelet and the controller repeat it, also after they or the machine have crashed")
	}
}

// failing checks what is answered to a mount that cannot be made.
func (c *checker) failing(ctx context.Context) {
	l := c.newLife(nil)
	defer func() { _ = l.down(ctx) }()
	file := filepath.Join(c.box.dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		c.result("failure", NotTried, err.Error(), "")
		return
	}
	before := []flexvolume.Operation{flexvolume.OpGetVolumeName, flexvolume.OpAttach, flexvolume.OpWaitForAttach}
	for _, op := range before {
		if !c.caps.Attach {
			break
		}
		if _, err := l.do(ctx, op); err != nil {
			c.result("failure", NotTried, fmt.Sprintf("%s: %v", op, err), "")
			return
		}
	}
	outcome := c.failingMount(ctx, l, flexvolume.OpMount, filepath.Join(file, "volume"))
	if c.caps.Attach && errors.Is(outcome.Err, flexvolume.ErrNotSupported) {
		outcome = c.failingMount(ctx, l, flexvolume.OpMountDevice, filepath.Join(file, "volume"))
	}
	problem := outcome.Err
	switch {
	case outcome.Err == nil:
		problem = errors.New("it reports Success for a mount at a directory that cannot exist")
	case errors.Is(outcome.Err, flexvolume.ErrNotSupported):
		c.result("failure", NotTried, "it has no operation that mounts", "")
		return
	case flexvolume.KindOf(outcome.Err) == flexvolume.KindFailure && strings.TrimSpace(outcome.Message) == "":
		problem = errors.New("it reports Failure without a message")
	case flexvolume.KindOf(outcome.Err) == flexvolume.KindFailure:
		problem = nil
	}
	c.judge("failure", problem, Wrong, fmt.Sprintf("it reports Failure for a mount that cannot be made: %q", shorten(outcome.Message)),
		`answer {"status":"Failure","message":"why"} and exit with 1 where something fails; look at the exit codes of mount and mkdir`)
}

// failingMount calls an operation that mounts with a directory that cannot exist.
func (c *checker) failingMount(ctx context.Context, l *life, op flexvolume.Operation, dir string) flexvolume.Outcome {
	args, err := l.args(op)
	if err != nil {
		return flexvolume.Outcome{Operation: op, Err: err}
	}
	args[0] = dir
	return c.try(ctx, flexvolume.Trial{Operation: op, Args: args})
}
