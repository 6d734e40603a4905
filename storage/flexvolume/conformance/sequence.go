package conformance

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/slipway-platform/slipway/storage/flexvolume"
)

// sequence leads one volume through its life, each operation twice in a row, and then through another life with a pod that looks for the data
// of the first.
func (c *checker) sequence(ctx context.Context) {
	l := c.newLife(nil)
	var written []byte
	ok := true
	for _, op := range c.ups() {
		if !ok {
			c.result(string(op), NotTried, "the operation before it went wrong", "")
			continue
		}
		ok = c.twice(ctx, l, op)
		if ok && op == flexvolume.OpAttach {
			c.isAttached(ctx, l, true)
		}
	}
	if ok {
		written = c.write(l)
	}
	for _, op := range c.downs() {
		c.twice(ctx, l, op)
	}
	if c.caps.Attach && ok {
		c.isAttached(ctx, l, false)
	}
	c.pairs()
	if written == nil {
		c.result("data", NotTried, "there is no data from before", "")
		return
	}
	c.read(ctx, l, written)
}

// twice does an operation two times.
func (c *checker) twice(ctx context.Context, l *life, op flexvolume.Operation) bool {
	outcome, err := l.do(ctx, op)
	if err != nil {
		c.result(string(op), Wrong, err.Error(), "make "+string(op)+" do what the interface asks for")
		return false
	}
	if errors.Is(outcome.Err, flexvolume.ErrNotSupported) {
		c.result(string(op), OK, "it lacks the operation, which is done without it", "")
		return true
	}
	c.result(string(op), OK, c.said(l, outcome), "")

	name := l.name
	_, err = l.do(ctx, op)
	if err == nil && l.name != name {
		err = fmt.Errorf("it answers with the name %q, then %q", name, l.name)
	}
	c.judge(string(op)+"-repeated", err, Wrong, "it succeeds again",
		"let "+string(op)+" succeed where it has been done already: Kubernetes repeats calls whose end it does not know")
	return err == nil
}

// said is what a successful call has answered, in words.
func (c *checker) said(l *life, outcome flexvolume.Outcome) string {
	switch outcome.Operation {
	case flexvolume.OpGetVolumeName:
		return fmt.Sprintf("it answers with the name %q", l.name)
	case flexvolume.OpAttach, flexvolume.OpWaitForAttach:
		return fmt.Sprintf("it succeeds, with device %q", l.device)
	case flexvolume.OpMount:
		if mounts, err := mountsAt(l.dir); err == nil && mounts == 0 {
			return "it succeeds, with files in the directory and no mount"
		}
	}
	return "it succeeds"
}

// isAttached checks the answer to isattached, for this node and for another one.
func (c *checker) isAttached(ctx context.Context, l *life, want bool) {
	check := map[bool]string{true: "isattached", false: "isattached-detached"}[want]
	outcome := l.call(ctx, flexvolume.OpIsAttached, 0)
	if errors.Is(outcome.Err, flexvolume.ErrNotSupported) {
		c.result(check, Risk, "it lacks the operation", "add isattached: without it a volume that was detached by others is taken for attached for ever")
		return
	}
	problem := outcome.Err
	if problem == nil && outcome.Attached != want {
		problem = fmt.Errorf("it answers attached: %t, and the volume has just been %s", outcome.Attached,
			map[bool]string{true: "attached", false: "detached"}[want])
	}
	c.judge(check, problem, Wrong, fmt.Sprintf("it answers attached: %t", outcome.Attached), "answer with what is true of the node now")
	if !want || problem != nil {
		return
	}
	elsewhere := *l
	elsewhere.node += "-other"
	outcome = elsewhere.call(ctx, flexvolume.OpIsAttached, 0)
	if problem = outcome.Err; problem == nil && outcome.Attached {
		problem = errors.New("it answers attached: true for a node to which it was not attached")
	}
	c.judge("isattached-elsewhere", problem, Wrong, "it answers attached: false for another node", "compare the node's name, the second argument")
}

// pairs looks for operations without the one that undoes them, among those that were called.
func (c *checker) pairs() {
	has := func(op flexvolume.Operation) bool {
		for _, outcome := range c.calls {
			if outcome.Operation == op && outcome.Err == nil {
				return true
			}
		}
		return false
	}
	var problem error
	switch {
	case c.caps.Attach && !has(flexvolume.OpAttach):
		problem = errors.New("it says that it is attachable, but has not attached")
	case has(flexvolume.OpAttach) && c.driver.Lacks(flexvolume.OpDetach):
		problem = errors.New("it has attach, but lacks detach: volumes stay attached")
	case has(flexvolume.OpMountDevice) && c.driver.Lacks(flexvolume.OpUnmountDevice):
		problem = errors.New("it has mountdevice, but lacks unmountdevice: the directory is only unmounted")
	case has(flexvolume.OpMount) && c.driver.Lacks(flexvolume.OpUnmount):
		problem = errors.New("it has mount, but lacks unmount: the directory is only unmounted")
	}
	c.judge("pairs", problem, Risk, "what it does it can undo", "add the missing operation, or say in init what is true")
}

// write puts data into the volume.
func (c *checker) write(l *life) []byte {
	content := []byte(rand.Text())
	if err := os.WriteFile(filepath.Join(l.dir, "check"), content, 0o600); err != nil {
		c.result("write", Risk, fmt.Sprintf("a file cannot be written into the volume: %v", err), "let volumes be written, unless the storage is only to be read")
		return nil
	}
	c.result("write", OK, "a file can be written into the volume", "")
	return content
}

// read looks for the data in a new life of the volume.
func (c *checker) read(ctx context.Context, l *life, written []byte) {
	problem := l.up(ctx)
	if problem == nil {
		found, err := os.ReadFile(filepath.Join(l.dir, "check"))
		if err != nil || string(found) != string(written) {
			c.result("data", Risk, "a file of the first pod is not there for the next one", "keep data, unless volumes are meant to be scratch space")
			_ = l.down(ctx)
			return
		}
	}
	if problem = errors.Join(problem, l.down(ctx)); problem != nil {
		c.result("data", Wrong, "the second life of the volume: "+problem.Error(), "leave nothing behind that is in the way of the next pod")
		return
	}
	c.result("data", OK, "a file of the first pod is there for the next one", "")
}
