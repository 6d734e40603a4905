package image

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/containerd/v2/core/diff"
	"github.com/containerd/containerd/v2/core/mount"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"google.golang.org/grpc/codes"
)

const (
	// minUnpackTime is the time to unpack a small layer. Each MiB adds a second. A layer can write
	// the same file repeatedly, which needs no space.
	minUnpackTime = 10 * time.Minute
	// maxGrowth is the memory in bytes that containerd can need to unpack all layers at a time: it
	// keeps an entry for each directory of a layer.
	maxGrowth = 512 << 20
)

// unpacking limits the time and memory that unpacking layers takes.
type unpacking struct {
	// queue has one place for each namespace.
	queue *queue
	// socket is the Unix socket of containerd.
	socket string
	// minTime is minUnpackTime, except in tests.
	minTime time.Duration
	memory  *memory
}

// run unpacks a layer with work when the queue admits it. It cancels work if it takes too long or
// needs too much memory.
func (u unpacking) run(ctx context.Context, namespace string, store content.Store, layer ocispec.Descriptor, work func(ctx context.Context) error) error {
	release, err := u.queue.wait(ctx, namespace, "")
	if err != nil {
		return err
	}
	defer release()
	if err := checkWindow(ctx, store, layer); err != nil {
		return err
	}
	pid, err := peer(u.socket)
	if err != nil {
		return err
	}
	layerMemory, err := u.memory.add(pid)
	if err != nil {
		return err
	}
	defer u.memory.remove(layerMemory)
	timeout := u.minTime + time.Duration(layer.Size>>20)*time.Second
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, &rejection{codes.DeadlineExceeded, fmt.Sprintf("a layer of the image is not unpacked after %s", timeout)})
	defer cancel()
	ctx, end := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if poll(ctx, func() bool {
			now, err := residentMemory(pid)
			return err == nil && u.memory.exceeds(layerMemory, now)
		}) == nil {
			end(&rejection{codes.ResourceExhausted, "a layer of the image needs too much memory to unpack"})
		}
	}()
	err = work(ctx)
	cause := context.Cause(ctx)
	end(nil)
	<-done
	if reason := (*rejection)(nil); err != nil && errors.As(cause, &reason) {
		return fmt.Errorf("%w: %w", reason, err)
	}
	return err
}

// limitedApplier unpacks layers for pods of a namespace.
type limitedApplier struct {
	diff.Applier
	unpacking unpacking
	store     content.Store
	namespace string
}

// Apply unpacks a layer.
func (a limitedApplier) Apply(ctx context.Context, layer ocispec.Descriptor, mounts []mount.Mount, options ...diff.ApplyOpt) (result ocispec.Descriptor, err error) {
	err = a.unpacking.run(ctx, a.namespace, a.store, layer, func(ctx context.Context) (err error) {
		result, err = a.Applier.Apply(ctx, layer, mounts, options...)
		return err
	})
	return result, err
}

// residentMemory returns the resident memory of a process in bytes.
func residentMemory(pid int) (int64, error) {
	statm, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, fmt.Errorf("read memory of containerd: %w", err)
	}
	var size, resident int64
	if _, err := fmt.Sscan(string(statm), &size, &resident); err != nil {
		return 0, fmt.Errorf("read memory of containerd: %w", err)
	}
	return resident * int64(os.Getpagesize()), nil
}
