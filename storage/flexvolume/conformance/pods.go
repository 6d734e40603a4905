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

// readOnly checks that a read-only volume is not writable.
func (c *checker) readOnly(ctx context.Context) {
	// Mount the volume read-write first, because a new volume might not have a file system yet.
	l := c.newLifecycle(nil)
	failure := errors.Join(l.setUp(ctx), l.tearDown(ctx))
	if failure == nil {
		l.request.ReadOnly = true
		failure = l.setUp(ctx)
	}
	var writable bool
	if failure == nil {
		writable = os.WriteFile(filepath.Join(l.dir, "check"), nil, 0o600) == nil
	}
	if failure = errors.Join(failure, l.tearDown(ctx)); failure != nil {
		c.result("read-only", Risk, failure.Error(), "mount a volume with kubernetes.io/readwrite=ro in the same way as with rw, but read-only")
		return
	}
	if writable {
		failure = errors.New("a file can be written to a read-only volume")
	}
	c.check("read-only", failure, Risk, "a read-only volume is not writable",
		"mount read-only if kubernetes.io/readwrite is ro; containers cannot write in any case, but the storage is not protected")
}

// twoPods checks that two pods on a node can use a volume, and that the volume remains mounted for
// one pod when the other pod terminates.
func (c *checker) twoPods(ctx context.Context) {
	first := c.newLifecycle(nil)
	failure := first.setUp(ctx)
	second := first.otherPod()
	if failure == nil {
		_, failure = second.do(ctx, flexvolume.OpMount)
	}
	if failure == nil {
		failure = write(filepath.Join(second.dir, "check"), []byte("second"))
	}
	_, unmountErr := first.do(context.WithoutCancel(ctx), flexvolume.OpUnmount)
	failure = errors.Join(failure, unmountErr)
	if failure == nil {
		if err := checkPresent(second.dir); err != nil {
			failure = errors.New("the second pod lost the volume when the first pod ended")
		}
	}
	failure = errors.Join(failure, second.tearDown(ctx))
	c.check("pods", failure, Risk, "two pods use the volume, and the second keeps it when the first ends",
		"mount a volume for each pod separately: unmount must affect only its own directory")
}

// nothingToUndo checks that operations such as unmount succeed if there is nothing to undo, as
// after a crash.
func (c *checker) nothingToUndo(ctx context.Context) {
	l := c.newLifecycle(nil)
	if c.caps.Attach {
		l.call(ctx, flexvolume.OpGetVolumeName, 0)
	}
	for _, op := range c.teardownOps() {
		object := "a volume that was never attached"
		switch op {
		case flexvolume.OpUnmount:
			object = "a volume that is not mounted"
		case flexvolume.OpUnmountDevice:
			object = "a device that is not mounted"
		}
		outcome := l.call(ctx, op, 0)
		if errors.Is(outcome.Err, flexvolume.ErrNotSupported) {
			outcome.Err = nil
		}
		_, _ = os.Remove(l.dir), os.Remove(l.stagedDir)
		c.check(string(op)+"-undone", outcome.Err, Risk, "it succeeds for "+object,
			"let "+string(op)+" succeed for "+object+": the kubelet and the controller repeat it, including after a crash")
	}
}

// failingMountIsReported checks the response to a mount that must fail.
func (c *checker) failingMountIsReported(ctx context.Context) {
	l := c.newLifecycle(nil)
	defer func() { _ = l.tearDown(ctx) }()
	file := filepath.Join(c.sandbox.dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		c.result("failure", NotTried, err.Error(), "")
		return
	}
	setupOps := []flexvolume.Operation{flexvolume.OpGetVolumeName, flexvolume.OpAttach, flexvolume.OpWaitForAttach}
	for _, op := range setupOps {
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
	failure := outcome.Err
	switch {
	case outcome.Err == nil:
		failure = errors.New("it reports Success for a mount at a directory that cannot exist")
	case errors.Is(outcome.Err, flexvolume.ErrNotSupported):
		c.result("failure", NotTried, "it supports no operation that mounts", "")
		return
	case flexvolume.KindOf(outcome.Err) == flexvolume.KindFailure && strings.TrimSpace(outcome.Message) == "":
		failure = errors.New("it reports Failure without a message")
	case flexvolume.KindOf(outcome.Err) == flexvolume.KindFailure:
		failure = nil
	}
	c.check("failure", failure, Risk, fmt.Sprintf("it reports Failure for a mount that must fail: %q", shorten(outcome.Message)),
		`return {"status":"Failure","message":"reason"} and exit with 1 if anything fails; check the exit codes of mount and mkdir`)
}

// failingMount calls a mount operation with a directory that cannot exist.
func (c *checker) failingMount(ctx context.Context, l *lifecycle, op flexvolume.Operation, dir string) flexvolume.TrialResult {
	args, err := l.args(op)
	if err != nil {
		return flexvolume.TrialResult{Operation: op, Err: err}
	}
	args[0] = dir
	return c.call(ctx, flexvolume.Trial{Operation: op, Args: args})
}
