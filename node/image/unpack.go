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
	// minUnpackTime is the time limit for unpacking a layer. Each MiB of the layer adds one second
	// to the limit. The time is limited because a layer can write the same file repeatedly, which
	// needs no disk space.
	minUnpackTime = 10 * time.Minute
	// maxGrowth is the maximum memory, in bytes, that containerd may need to unpack all layers
	// concurrently. Layers with many directories need the most memory, because containerd keeps an
	// entry for each directory.
	maxGrowth = 512 << 20
)

// unpacking limits the time and the memory that are used for unpacking layers.
type unpacking struct {
	// queue has one slot for each namespace.
	queue *queue
	// socket is containerd's Unix socket.
	socket string
	// minTime is minUnpackTime, except in tests.
	minTime time.Duration
	memory  *memory
}

// run waits until the queue admits a layer, and then calls work, which unpacks it. It cancels work
// if it takes too long or needs too much memory.
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
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, &rejection{codes.DeadlineExceeded, fmt.Sprintf("a layer of the image could not be unpacked within %s", timeout)})
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

// limitedApplier unpacks layers for pods in a namespace.
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

// residentMemory returns a process's resident memory in bytes.
func residentMemory(pid int) (int64, error) {
	statm, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, fmt.Errorf("read containerd memory: %w", err)
	}
	var size, resident int64
	if _, err := fmt.Sscan(string(statm), &size, &resident); err != nil {
		return 0, fmt.Errorf("read containerd memory: %w", err)
	}
	return resident * int64(os.Getpagesize()), nil
}
