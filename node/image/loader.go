package image

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	client "github.com/containerd/containerd/v2/client"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	criapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// retryDelay is the time between two looks at something that is not there yet.
const retryDelay = 50 * time.Millisecond

// Loader is the part of a node that loads the images every node has, once at its start.
type Loader struct {
	// Store is where to. Its containerd need not be running yet.
	Store Store
	// Pause is the path of the program of pod sandboxes, Runc that of runc, Busybox that of a static busybox, and Executable that of slipway
	// (/proc/self/exe, so that it is this slipway even when a newer one has taken its path).
	Pause, Runc, Busybox, Executable string
	// HAProxy finds the path of HAProxy, or says what it lacks. Nil: there is no image of routers.
	HAProxy func() (string, error)
	// Keepalived finds the paths of keepalived and what its scripts need, or says what it lacks. Nil: there is no image of shared addresses.
	Keepalived func() ([]string, error)
	// Archives is a directory of image archives. Those that have changed since they were loaded are loaded. It need not exist.
	Archives string
	// Calm is closed when the node has started: large images wait for it. Nil: they do not wait.
	Calm <-chan struct{}
	// HasDeployer is told, if it is not nil, that the image of deployers is there, again and again until it returns no error.
	HasDeployer func(context.Context) error
}

// Name returns the name of the part.
func (l Loader) Name() string { return "images" }

// Run loads the image of pod sandboxes and that of small programs and calls ready: pods can start. Then it loads the others one by
// one. Only the first must succeed; an image that cannot be loaded is logged. Run returns when ctx ends.
func (l Loader) Run(ctx context.Context, ready func()) error {
	err := l.loadPause(ctx)
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return fmt.Errorf("images: %w", err)
	}
	l.try(ctx, l.loadTools)
	ready()
	if l.Calm != nil {
		select {
		case <-l.Calm:
		case <-ctx.Done():
			return nil
		}
	}
	l.try(ctx, l.loadArchives)
	l.try(ctx, l.loadDeployer)
	l.try(ctx, l.loadSelf)
	l.try(ctx, l.loadRouter)
	l.try(ctx, l.loadBuilder)
	l.try(ctx, l.loadFailover)
	<-ctx.Done()
	return nil
}

// try logs what a step could not do: the node serves without it.
func (l Loader) try(ctx context.Context, step func(context.Context) error) {
	if err := step(ctx); err != nil && ctx.Err() == nil {
		slog.ErrorContext(ctx, "image not loaded", "part", l.Name(), "error", err)
	}
}

// loadPause waits for containerd, loads the image of pod sandboxes and waits until the CRI plugin knows it.
func (l Loader) loadPause(ctx context.Context) error {
	err := poll(ctx, func() bool {
		_, err := os.Stat(l.Store.Socket)
		return err == nil
	})
	if err != nil {
		return fmt.Errorf("wait for containerd: %w", err)
	}
	connection, err := grpc.NewClient("unix://"+l.Store.Socket, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{BaseDelay: retryDelay, Multiplier: 1, MaxDelay: retryDelay}, MinConnectTimeout: 5 * time.Second, // a busy machine is slow to answer
		}))
	if err != nil {
		return fmt.Errorf("connect to containerd: %w", err)
	}
	defer connection.Close()
	cri := criapi.NewImageServiceClient(connection)
	err = poll(ctx, func() bool {
		_, err := cri.ImageFsInfo(ctx, &criapi.ImageFsInfoRequest{}, grpc.WaitForReady(true))
		return err == nil
	})
	if err != nil {
		return fmt.Errorf("wait for containerd: %w", err)
	}
	pause, err := Pause(l.Pause)
	if err != nil {
		return err
	}
	if err := l.load(ctx, pause); err != nil {
		return err
	}
	// The plugin learns of it by an event. A pod that starts before would make it look for the image in a registry.
	return poll(ctx, func() bool {
		status, err := cri.ImageStatus(ctx, &criapi.ImageStatusRequest{Image: &criapi.ImageSpec{Image: PauseName}})
		return err == nil && status.GetImage() != nil
	})
}

func (l Loader) loadTools(ctx context.Context) error {
	tools, err := Tools(l.Busybox)
	if err != nil {
		return err
	}
	return l.load(ctx, tools)
}

// loadDeployer loads the image of deployers, and tells.
func (l Loader) loadDeployer(ctx context.Context) error {
	deployer, err := Deployer()
	if err != nil {
		return err
	}
	if err := l.load(ctx, deployer); err != nil || l.HasDeployer == nil {
		return err
	}
	return l.tell(ctx)
}

// tell tells HasDeployer until it takes it, and logs what is in the way, once as long as that is the same.
func (l Loader) tell(ctx context.Context) error {
	logged := ""
	for err := l.HasDeployer(ctx); err != nil; err = l.HasDeployer(ctx) {
		if reason := err.Error(); reason != logged {
			slog.WarnContext(ctx, "node not marked as one that has the image of deployers, trying again", "part", l.Name(), "error", err)
			logged = reason
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(time.Second):
		}
	}
	return nil
}

func (l Loader) loadSelf(ctx context.Context) error {
	self, err := Self(l.Executable)
	if err != nil {
		return err
	}
	return l.load(ctx, self)
}

// loadRouter loads the image of routers. A host without HAProxy has none, as its own router says.
func (l Loader) loadRouter(ctx context.Context) error {
	if l.HAProxy == nil {
		return nil
	}
	haproxy, err := l.HAProxy()
	if err != nil {
		return nil
	}
	router, err := Router(haproxy)
	if err != nil {
		return err
	}
	return l.load(ctx, router)
}

// loadFailover loads the image of shared addresses. A host without keepalived has none, and its pods say so.
func (l Loader) loadFailover(ctx context.Context) error {
	if l.Keepalived == nil {
		return nil
	}
	programs, err := l.Keepalived()
	if err != nil {
		return nil
	}
	failover, err := Failover(l.Busybox, programs)
	if err != nil {
		return err
	}
	return l.load(ctx, failover)
}

func (l Loader) loadBuilder(ctx context.Context) error {
	builder, err := Builder(l.Runc)
	if err != nil {
		return err
	}
	return l.load(ctx, builder)
}

func (l Loader) load(ctx context.Context, img Image) error {
	start := time.Now()
	loaded, err := l.Store.Load(ctx, img)
	if loaded {
		slog.InfoContext(ctx, "image loaded", "part", l.Name(), "image", img.Name, "took", time.Since(start))
	}
	return err
}

// loadArchives loads the archives that have not been loaded as they are.
func (l Loader) loadArchives(ctx context.Context) error {
	files, err := os.ReadDir(l.Archives)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list image archives: %w", err)
	}
	c, err := l.Store.connect()
	if err != nil {
		return err
	}
	defer c.Close()
	loaded, err := archivesOf(ctx, c)
	if err != nil {
		return err
	}
	var errs []error
	for _, file := range files {
		info, err := file.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		key := fmt.Sprintf("%s?%d,%d", file.Name(), info.Size(), info.ModTime().UnixNano())
		if loaded[key] {
			continue
		}
		path := filepath.Join(l.Archives, file.Name())
		names, err := l.Store.loadArchive(ctx, c, path, map[string]string{labelPinned: pinned, labelArchive: key}, nil)
		if err != nil {
			errs = append(errs, fmt.Errorf("load images of %q: %w", path, err))
			continue
		}
		slog.InfoContext(ctx, "images loaded", "part", l.Name(), "archive", path, "images", names)
	}
	return errors.Join(errs...)
}

// archivesOf returns which archives the images of the store come from, by what labelArchive says.
func archivesOf(ctx context.Context, c *client.Client) (map[string]bool, error) {
	records, err := c.ImageService().List(ctx)
	if err != nil {
		return nil, fmt.Errorf("list images: %w", err)
	}
	archives := map[string]bool{}
	for _, record := range records {
		if archive, ok := record.Labels[labelArchive]; ok {
			archives[archive] = true
		}
	}
	return archives, nil
}

// poll returns nil when done is true, and the reason of ctx when ctx ends before.
func poll(ctx context.Context, done func() bool) error {
	for !done() {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(retryDelay):
		}
	}
	return nil
}
