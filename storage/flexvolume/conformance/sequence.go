package conformance

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/slipway-platform/slipway/storage/flexvolume"
)

// sequence runs three lifecycles: one for an ordinary pod, one in which a second pod reads the
// first pod's data, and one in which each operation is repeated.
func (c *checker) sequence(ctx context.Context) {
	l := c.newLifecycle(nil)
	var data []byte
	ok := true
	for _, op := range c.setupOps() {
		if !ok {
			c.result(string(op), NotTried, "the previous operation failed", "")
			continue
		}
		ok = c.runOnce(ctx, l, op)
		if ok && op == flexvolume.OpAttach {
			c.isAttached(ctx, l, true)
		}
	}
	if ok {
		data = c.write(l)
	}
	for _, op := range c.teardownOps() {
		c.runOnce(ctx, l, op)
	}
	if c.caps.Attach && ok {
		c.isAttached(ctx, l, false)
	}
	c.pairs()
	if data == nil {
		c.result("data", NotTried, "no data was written", "")
	} else {
		c.readBack(ctx, l, data)
	}
	c.repeated(ctx)
}

// runOnce runs an operation for an ordinary pod. A failure means that the driver does not work.
func (c *checker) runOnce(ctx context.Context, l *lifecycle, op flexvolume.Operation) bool {
	outcome, err := l.do(ctx, op)
	switch {
	case err != nil:
		c.result(string(op), Wrong, err.Error(), "make "+string(op)+" conform to the interface")
	case errors.Is(outcome.Err, flexvolume.ErrNotSupported):
		c.result(string(op), OK, "it does not support the operation, and the replacement succeeds", "")
	default:
		c.result(string(op), OK, c.describe(l, outcome), "")
	}
	return err == nil
}

// repeated runs each operation twice in a row. If a repeated operation fails, it continues with a
// new volume.
func (c *checker) repeated(ctx context.Context) {
	var l *lifecycle
	ops := slices.Concat(c.setupOps(), c.teardownOps())
	for i, op := range ops {
		check := string(op) + "-repeated"
		pending := []flexvolume.Operation{op}
		if l == nil {
			l, pending = c.newLifecycle(nil), ops[:i+1]
		}
		var err error
		var outcome flexvolume.TrialResult
		for _, next := range pending {
			if outcome, err = l.do(ctx, next); err != nil {
				break
			}
		}
		if err != nil {
			c.result(check, NotTried, fmt.Sprintf("%s failed before: %v", outcome.Operation, err), "")
		} else if !errors.Is(outcome.Err, flexvolume.ErrNotSupported) {
			err = l.repeat(ctx, op)
			c.check(check, err, Risk, "it succeeds again",
				"let "+string(op)+" succeed if it has been done already: Kubernetes repeats calls if it did not receive the result")
		}
		if err != nil {
			_ = l.tearDown(ctx)
			l = nil
		}
	}
}

// repeat runs an operation again and checks that the volume's name does not change.
func (l *lifecycle) repeat(ctx context.Context, op flexvolume.Operation) error {
	name := l.name
	_, err := l.do(ctx, op)
	if err == nil && l.name != name {
		err = fmt.Errorf("it returns the name %q, then %q", name, l.name)
	}
	return err
}

// describe returns a description of a successful call.
func (c *checker) describe(l *lifecycle, outcome flexvolume.TrialResult) string {
	switch outcome.Operation {
	case flexvolume.OpGetVolumeName:
		return fmt.Sprintf("it returns the name %q", l.name)
	case flexvolume.OpAttach, flexvolume.OpWaitForAttach:
		return fmt.Sprintf("it succeeds, with device %q", l.device)
	case flexvolume.OpMount:
		if mounts, err := mountsAt(l.dir); err == nil && mounts == 0 {
			return "it succeeds, with files in the directory instead of a mount"
		}
	}
	return "it succeeds"
}

// isAttached checks the response to isattached for this node and for another node.
func (c *checker) isAttached(ctx context.Context, l *lifecycle, want bool) {
	check, verdict := "isattached", Wrong
	if !want {
		check, verdict = "isattached-detached", Risk
	}
	outcome := l.call(ctx, flexvolume.OpIsAttached, 0)
	if errors.Is(outcome.Err, flexvolume.ErrNotSupported) {
		c.result(check, Risk, "it does not support the operation", "implement isattached: without it, a volume that was detached externally counts as attached forever")
		return
	}
	failure := outcome.Err
	if failure == nil && outcome.Attached != want {
		failure = fmt.Errorf("it returns attached: %t, although the volume has just been %s", outcome.Attached,
			map[bool]string{true: "attached", false: "detached"}[want])
	}
	c.check(check, failure, verdict, fmt.Sprintf("it returns attached: %t", outcome.Attached), "return the current state of the volume on the node")
	if !want || failure != nil {
		return
	}
	elsewhere := *l
	elsewhere.node += "-other"
	outcome = elsewhere.call(ctx, flexvolume.OpIsAttached, 0)
	if failure = outcome.Err; failure == nil && outcome.Attached {
		failure = errors.New("it returns attached: true for a node to which the volume was not attached")
	}
	c.check("isattached-elsewhere", failure, Risk, "it returns attached: false for another node", "compare the node name, the second argument")
}

// pairs checks that each operation that was called has a reverse operation.
func (c *checker) pairs() {
	has := func(op flexvolume.Operation) bool {
		for _, outcome := range c.calls {
			if outcome.Operation == op && outcome.Err == nil {
				return true
			}
		}
		return false
	}
	var failure error
	switch {
	case c.caps.Attach && !has(flexvolume.OpAttach):
		failure = errors.New("it reports that it is attachable, but it did not attach")
	case has(flexvolume.OpAttach) && c.driver.Unsupported(flexvolume.OpDetach):
		failure = errors.New("it supports attach but not detach: volumes stay attached")
	case has(flexvolume.OpMountDevice) && c.driver.Unsupported(flexvolume.OpUnmountDevice):
		failure = errors.New("it supports mountdevice but not unmountdevice: the directory is only unmounted")
	case has(flexvolume.OpMount) && c.driver.Unsupported(flexvolume.OpUnmount):
		failure = errors.New("it supports mount but not unmount: the directory is only unmounted")
	}
	c.check("pairs", failure, Risk, "each operation has its reverse operation", "add the missing operation, or correct the capabilities that init returns")
}

// write writes data to the volume.
func (c *checker) write(l *lifecycle) []byte {
	content := []byte(rand.Text())
	err := os.WriteFile(filepath.Join(l.dir, "check"), content, 0o600)
	if errors.Is(err, unix.EROFS) {
		c.result("write", OK, "the storage is read-only, so no file is written", "")
		return nil
	}
	if err != nil {
		c.result("write", Risk, fmt.Sprintf("a file cannot be written to the volume: %v", err), "make volumes writable, unless the storage is read-only by design")
		return nil
	}
	c.result("write", OK, "a file can be written to the volume", "")
	return content
}

// readBack reads the data in a new lifecycle of the same volume.
func (c *checker) readBack(ctx context.Context, l *lifecycle, data []byte) {
	failure := l.setUp(ctx)
	if failure == nil {
		content, err := os.ReadFile(filepath.Join(l.dir, "check"))
		if err != nil || string(content) != string(data) {
			c.result("data", Risk, "a file of the first pod does not exist for the next pod", "keep data, unless volumes are scratch space by design")
			_ = l.tearDown(ctx)
			return
		}
	}
	if failure = errors.Join(failure, l.tearDown(ctx)); failure != nil {
		c.result("data", Wrong, "the second lifecycle of the volume: "+failure.Error(), "remove everything that blocks the next pod")
		return
	}
	c.result("data", OK, "a file of the first pod exists for the next pod", "")
}
