package conformance

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/slipway-platform/slipway/storage/flexvolume"
)

// life is one volume on its way through the operations, as one pod uses it.
type life struct {
	c        *checker
	mounting flexvolume.Mounting
	name     string // the driver's answer to getvolumename, or the volume's own
	device   string
	staged   string // where the device is mounted for all pods
	dir      string // where the volume appears for the pod
	node     string
	keeps    bool // data, as knownVolume has found out
	newSize  int64
}

// newLife makes a volume of its own. change may alter what the driver is told; it may be nil.
func (c *checker) newLife(change func(*flexvolume.Mounting)) *life {
	c.mu.Lock()
	c.volumes++
	number := c.volumes
	c.mu.Unlock()
	name := fmt.Sprintf("check-%s-%d", c.box.id(), number)
	mounting := flexvolume.Mounting{
		Volume: flexvolume.Volume{Name: name, FSType: c.FSType, Options: map[string]string{}},
		Pod: flexvolume.Pod{
			Name: "pod-" + strconv.Itoa(number), Namespace: "check", ServiceAccount: "default",
			UID: fmt.Sprintf("00000000-0000-0000-0000-%012d", number),
		},
		Secrets: map[string][]byte{},
	}
	for key, value := range c.Secrets {
		mounting.Secrets[key] = value
	}
	c.setOptions(&mounting, c.box.data())
	if change != nil {
		change(&mounting)
	}
	l := &life{c: c, mounting: mounting, name: mounting.Name, node: c.Node, newSize: 2 * c.Size}
	l.staged = flexvolume.DeviceMountDir(c.box.kubelet(), c.Driver, l.name)
	l.dir = l.podDir(mounting.Pod.UID)
	return l
}

// setOptions gives the volume the options of the Config, with {dir} and the like replaced.
func (c *checker) setOptions(mounting *flexvolume.Mounting, dir string) {
	replace := strings.NewReplacer("{dir}", dir, "{volume}", mounting.Name, "{size}", strconv.FormatInt(c.Size, 10))
	for key, value := range c.Options {
		mounting.Options[key] = replace.Replace(value)
	}
}

func (l *life) podDir(uid string) string {
	return filepath.Join(l.c.box.kubelet(), "pods", uid, "volumes", flexvolume.EscapeName(l.c.Driver), l.mounting.Name)
}

// otherPod is the same volume in use by another pod of the node.
func (l *life) otherPod() *life {
	other := *l
	other.mounting.Pod.Name, other.mounting.Pod.UID = "other", strings.Replace(l.mounting.Pod.UID, "0000-0000-", "0000-0001-", 1)
	other.dir = other.podDir(other.mounting.Pod.UID)
	return &other
}

// ups are the operations that make the volume available, in order; downs undo them.
func (c *checker) ups() []flexvolume.Operation {
	if !c.caps.Attach {
		return []flexvolume.Operation{flexvolume.OpMount}
	}
	return []flexvolume.Operation{
		flexvolume.OpGetVolumeName, flexvolume.OpAttach, flexvolume.OpWaitForAttach, flexvolume.OpMountDevice, flexvolume.OpMount,
	}
}

func (c *checker) downs() []flexvolume.Operation {
	if !c.caps.Attach {
		return []flexvolume.Operation{flexvolume.OpUnmount}
	}
	return []flexvolume.Operation{flexvolume.OpUnmount, flexvolume.OpUnmountDevice, flexvolume.OpDetach}
}

// args are the arguments of an operation.
func (l *life) args(op flexvolume.Operation) ([]string, error) {
	input, err := l.mounting.Volume.Input()
	if op == flexvolume.OpMount {
		input, err = l.mounting.Input()
	}
	if err != nil {
		return nil, err
	}
	newSize, oldSize := strconv.FormatInt(l.newSize, 10), strconv.FormatInt(l.c.Size, 10)
	switch op {
	case flexvolume.OpGetVolumeName:
		return []string{input}, nil
	case flexvolume.OpAttach, flexvolume.OpIsAttached:
		return []string{input, l.node}, nil
	case flexvolume.OpWaitForAttach:
		return []string{l.device, input}, nil
	case flexvolume.OpMountDevice:
		return []string{l.staged, l.device, input}, nil
	case flexvolume.OpMount:
		return []string{l.dir, input}, nil
	case flexvolume.OpExpandVolume:
		return []string{input, l.staged, newSize, oldSize}, nil
	case flexvolume.OpExpandFS:
		return []string{input, l.device, l.staged, newSize, oldSize}, nil
	case flexvolume.OpUnmount:
		return []string{l.dir}, nil
	case flexvolume.OpUnmountDevice:
		return []string{l.staged}, nil
	case flexvolume.OpDetach:
		return []string{l.name, l.node}, nil
	}
	return nil, nil
}

// call makes one call as kubelet or the controller does, who see to it that the directory exists, and takes over what the driver answers. kill is when the driver is
// killed, or 0.
func (l *life) call(ctx context.Context, op flexvolume.Operation, kill time.Duration) flexvolume.Outcome {
	args, err := l.args(op)
	if err != nil {
		return flexvolume.Outcome{Operation: op, Err: err}
	}
	switch op {
	case flexvolume.OpMount, flexvolume.OpUnmount:
		err = os.MkdirAll(l.dir, 0o750)
	case flexvolume.OpMountDevice, flexvolume.OpUnmountDevice:
		err = os.MkdirAll(l.staged, 0o750)
	}
	if err != nil {
		return flexvolume.Outcome{Operation: op, Err: err}
	}
	outcome := l.c.try(ctx, flexvolume.Trial{Operation: op, Args: args, KillAfter: kill})
	if outcome.Err != nil {
		return outcome
	}
	switch op {
	case flexvolume.OpGetVolumeName:
		if outcome.VolumeName != "" {
			l.name = strings.ReplaceAll(outcome.VolumeName, "/", "~")
			l.staged = flexvolume.DeviceMountDir(l.c.box.kubelet(), l.c.Driver, l.name)
		}
	case flexvolume.OpAttach, flexvolume.OpWaitForAttach:
		l.device = outcome.Device
	}
	return outcome
}

// do makes a call, does what a node does where the driver lacks the operation, and looks whether it took effect. The
// error says what is wrong.
func (l *life) do(ctx context.Context, op flexvolume.Operation) (flexvolume.Outcome, error) {
	outcome := l.call(ctx, op, 0)
	switch {
	case errors.Is(outcome.Err, flexvolume.ErrNotSupported):
		if err := l.fallBack(ctx, op); err != nil {
			return outcome, fmt.Errorf("it lacks %s, and what is done in place of it fails: %w", op, err)
		}
	case outcome.Err != nil:
		return outcome, outcome.Err
	}
	return outcome, l.effect(op)
}

// fallBack does what Slipway and Kubernetes do for a driver that lacks an operation.
func (l *life) fallBack(ctx context.Context, op flexvolume.Operation) error {
	d := l.c.driver
	switch op {
	case flexvolume.OpMountDevice:
		return d.Stage(ctx, l.mounting.Volume, l.device, l.staged, "")
	case flexvolume.OpMount:
		staged := ""
		if l.c.caps.Attach {
			staged = l.staged
		}
		return d.Publish(ctx, l.mounting, l.dir, staged, "", nil)
	case flexvolume.OpUnmount:
		return d.Unpublish(ctx, l.dir, "")
	case flexvolume.OpUnmountDevice:
		return d.Unstage(ctx, l.staged, "")
	}
	return nil
}

// effect looks for what an operation that succeeded must have done.
func (l *life) effect(op flexvolume.Operation) error {
	switch op {
	case flexvolume.OpWaitForAttach:
		if _, err := os.Stat(l.device); l.device != "" && err != nil {
			return fmt.Errorf("it answers with device %q, which does not exist", l.device)
		}
	case flexvolume.OpMountDevice:
		if l.device != "" {
			return appears(l.staged)
		}
	case flexvolume.OpMount:
		return appears(l.dir)
	case flexvolume.OpUnmount:
		return disappears(l.dir)
	case flexvolume.OpUnmountDevice:
		return disappears(l.staged)
	}
	return nil
}

// appears says whether a volume is at a directory: one mount, or files.
func appears(dir string) error {
	mounts, err := mountsAt(dir)
	if err != nil || mounts == 1 {
		return err
	}
	if mounts > 1 {
		return fmt.Errorf("it has mounted %d times at the same directory, one over the other", mounts)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) == 0 {
		return errors.New("it reports Success, but nothing is mounted at the directory and there are no files in it")
	}
	return nil
}

// disappears says whether a volume is gone from a directory, and removes the directory as kubelet does.
func disappears(dir string) error {
	mounts, err := mountsAt(dir)
	if err != nil {
		return err
	}
	if mounts > 0 {
		return errors.New("it reports Success, but the directory is still mounted")
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return errors.New("it reports Success, but has left files in the directory, which therefore cannot be removed")
	}
	return nil
}

// up brings the volume to the pod; it stops at the first operation that goes wrong.
func (l *life) up(ctx context.Context) error {
	for _, op := range l.c.ups() {
		if _, err := l.do(ctx, op); err != nil {
			return fmt.Errorf("%s: %w", op, err)
		}
	}
	return nil
}

// down takes it away again, all operations whatever becomes of each.
func (l *life) down(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	var problems []error
	for _, op := range l.c.downs() {
		if _, err := l.do(ctx, op); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", op, err))
		}
	}
	return errors.Join(problems...)
}
