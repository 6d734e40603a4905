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

// lifecycle calls the operations for one volume, as Kubernetes does for one pod.
type lifecycle struct {
	c         *checker
	request   flexvolume.MountRequest
	name      string // the driver's response to getvolumename, or the volume's name
	device    string
	stagedDir string // where the device is mounted for all pods
	dir       string // where the volume is mounted for the pod
	node      string
	// keepsData and isReadOnly are properties of the storage, set by referenceVolume.
	keepsData, isReadOnly bool
	newSize               int64
}

// newLifecycle creates a lifecycle for a new volume. modify, if not nil, can change the driver's
// input.
func (c *checker) newLifecycle(modify func(*flexvolume.MountRequest)) *lifecycle {
	c.mu.Lock()
	c.volumes++
	number := c.volumes
	c.mu.Unlock()
	name := fmt.Sprintf("check-%s-%d", c.sandbox.id(), number)
	request := flexvolume.MountRequest{
		Volume: flexvolume.Volume{Name: name, FSType: c.FSType, Options: map[string]string{}},
		Pod: flexvolume.Pod{
			Name: "pod-" + strconv.Itoa(number), Namespace: "check", ServiceAccount: "default",
			UID: fmt.Sprintf("00000000-0000-0000-0000-%012d", number),
		},
		Secrets: map[string][]byte{},
	}
	for key, value := range c.Secrets {
		request.Secrets[key] = value
	}
	c.setOptions(&request, c.sandbox.data())
	if modify != nil {
		modify(&request)
	}
	l := &lifecycle{c: c, request: request, name: request.Name, node: c.Node, newSize: 2 * c.Size}
	l.stagedDir = flexvolume.DeviceMountDir(c.sandbox.kubelet(), c.Driver, l.name)
	l.dir = l.podDir(request.Pod.UID)
	return l
}

// setOptions sets the options from the Config, and replaces {dir}, {volume} and {size}.
func (c *checker) setOptions(request *flexvolume.MountRequest, dir string) {
	replace := strings.NewReplacer("{dir}", dir, "{volume}", request.Name, "{size}", strconv.FormatInt(c.Size, 10))
	for key, value := range c.Options {
		request.Options[key] = replace.Replace(value)
	}
}

func (l *lifecycle) podDir(uid string) string {
	return filepath.Join(l.c.sandbox.kubelet(), "pods", uid, "volumes", flexvolume.EscapeName(l.c.Driver), l.request.Name)
}

// otherPod returns a lifecycle of the same volume for another pod on the node.
func (l *lifecycle) otherPod() *lifecycle {
	second := *l
	second.request.Pod.Name, second.request.Pod.UID = "other", strings.Replace(l.request.Pod.UID, "0000-0000-", "0000-0001-", 1)
	second.dir = second.podDir(second.request.Pod.UID)
	return &second
}

// setupOps returns the operations that make the volume available, in execution order. teardownOps
// returns the operations that undo them.
func (c *checker) setupOps() []flexvolume.Operation {
	if !c.caps.Attach {
		return []flexvolume.Operation{flexvolume.OpMount}
	}
	return []flexvolume.Operation{
		flexvolume.OpGetVolumeName, flexvolume.OpAttach, flexvolume.OpWaitForAttach, flexvolume.OpMountDevice, flexvolume.OpMount,
	}
}

func (c *checker) teardownOps() []flexvolume.Operation {
	if !c.caps.Attach {
		return []flexvolume.Operation{flexvolume.OpUnmount}
	}
	return []flexvolume.Operation{flexvolume.OpUnmount, flexvolume.OpUnmountDevice, flexvolume.OpDetach}
}

// args returns an operation's arguments.
func (l *lifecycle) args(op flexvolume.Operation) ([]string, error) {
	input, err := l.request.Volume.Input()
	if op == flexvolume.OpMount {
		input, err = l.request.Input()
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
		return []string{l.stagedDir, l.device, input}, nil
	case flexvolume.OpMount:
		return []string{l.dir, input}, nil
	case flexvolume.OpExpandVolume:
		return []string{input, l.stagedDir, newSize, oldSize}, nil
	case flexvolume.OpExpandFS:
		return []string{input, l.device, l.stagedDir, newSize, oldSize}, nil
	case flexvolume.OpUnmount:
		return []string{l.dir}, nil
	case flexvolume.OpUnmountDevice:
		return []string{l.stagedDir}, nil
	case flexvolume.OpDetach:
		return []string{l.name, l.node}, nil
	}
	return nil, nil
}

// call makes one call as the kubelet or the controller would. It creates the directory first and
// stores the values that the driver returns. kill is the delay after which the driver is killed, or
// 0 if it is not killed.
func (l *lifecycle) call(ctx context.Context, op flexvolume.Operation, kill time.Duration) flexvolume.TrialResult {
	args, err := l.args(op)
	if err != nil {
		return flexvolume.TrialResult{Operation: op, Err: err}
	}
	switch op {
	case flexvolume.OpMount, flexvolume.OpUnmount:
		err = os.MkdirAll(l.dir, 0o750)
	case flexvolume.OpMountDevice, flexvolume.OpUnmountDevice:
		err = os.MkdirAll(l.stagedDir, 0o750)
	}
	if err != nil {
		return flexvolume.TrialResult{Operation: op, Err: err}
	}
	outcome := l.c.call(ctx, flexvolume.Trial{Operation: op, Args: args, KillAfter: kill})
	if outcome.Err != nil {
		return outcome
	}
	switch op {
	case flexvolume.OpGetVolumeName:
		if outcome.VolumeName != "" {
			l.name = strings.ReplaceAll(outcome.VolumeName, "/", "~")
			l.stagedDir = flexvolume.DeviceMountDir(l.c.sandbox.kubelet(), l.c.Driver, l.name)
		}
	case flexvolume.OpAttach, flexvolume.OpWaitForAttach:
		l.device = outcome.Device
	}
	return outcome
}

// do makes a call and checks its effect. If the driver does not support the operation, do emulates
// it.
func (l *lifecycle) do(ctx context.Context, op flexvolume.Operation) (flexvolume.TrialResult, error) {
	outcome := l.call(ctx, op, 0)
	switch {
	case errors.Is(outcome.Err, flexvolume.ErrNotSupported):
		if err := l.emulate(ctx, op); err != nil {
			return outcome, fmt.Errorf("it does not support %s, and the replacement fails: %w", op, err)
		}
	case outcome.Err != nil:
		return outcome, outcome.Err
	}
	return outcome, l.checkEffect(op)
}

// emulate replaces an operation that the driver does not support, as Slipway and Kubernetes do.
func (l *lifecycle) emulate(ctx context.Context, op flexvolume.Operation) error {
	d := l.c.driver
	switch op {
	case flexvolume.OpMountDevice:
		return d.Stage(ctx, l.request.Volume, l.device, l.stagedDir, "")
	case flexvolume.OpMount:
		stagedDir := ""
		if l.c.caps.Attach {
			stagedDir = l.stagedDir
		}
		return d.Publish(ctx, l.request, l.dir, stagedDir, "", nil)
	case flexvolume.OpUnmount:
		return d.Unpublish(ctx, l.dir, "")
	case flexvolume.OpUnmountDevice:
		return d.Unstage(ctx, l.stagedDir, "")
	}
	return nil
}

// checkEffect checks the effect of a successful operation.
func (l *lifecycle) checkEffect(op flexvolume.Operation) error {
	switch op {
	case flexvolume.OpWaitForAttach:
		if _, err := os.Stat(l.device); l.device != "" && err != nil {
			return fmt.Errorf("it returns device %q, which does not exist", l.device)
		}
	case flexvolume.OpMountDevice:
		if l.device != "" {
			return checkPresent(l.stagedDir)
		}
	case flexvolume.OpMount:
		return checkPresent(l.dir)
	case flexvolume.OpUnmount:
		return checkAbsent(l.dir)
	case flexvolume.OpUnmountDevice:
		return checkAbsent(l.stagedDir)
	}
	return nil
}

// checkPresent checks that dir contains a volume: exactly one mount, or files.
func checkPresent(dir string) error {
	mounts, err := mountsAt(dir)
	if err != nil || mounts == 1 {
		return err
	}
	if mounts > 1 {
		return fmt.Errorf("it mounted %d times at the same directory", mounts)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) == 0 {
		return errors.New("it reports Success, but nothing is mounted at the directory and the directory is empty")
	}
	return nil
}

// checkAbsent checks that dir no longer contains a volume, and removes dir as the kubelet would.
func checkAbsent(dir string) error {
	mounts, err := mountsAt(dir)
	if err != nil {
		return err
	}
	if mounts > 0 {
		return errors.New("it reports Success, but something is still mounted at the directory")
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return errors.New("it reports Success, but files remain in the directory, so it cannot be removed")
	}
	return nil
}

// setUp makes the volume available to the pod. It stops at the first failure.
func (l *lifecycle) setUp(ctx context.Context) error {
	for _, op := range l.c.setupOps() {
		if _, err := l.do(ctx, op); err != nil {
			return fmt.Errorf("%s: %w", op, err)
		}
	}
	return nil
}

// tearDown undoes setUp. It runs all operations, even after a failure.
func (l *lifecycle) tearDown(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	var errs []error
	for _, op := range l.c.teardownOps() {
		if _, err := l.do(ctx, op); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", op, err))
		}
	}
	return errors.Join(errs...)
}
