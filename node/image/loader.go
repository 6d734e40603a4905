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

// pollInterval is the interval between calls to poll's condition.
const pollInterval = 50 * time.Millisecond

// Loader is the component that loads the images that every node needs. It loads them once, when the
// component starts.
type Loader struct {
	// Store is the target store. Its containerd need not be running yet.
	Store Store
	// Pause, Runc, Busybox and Executable are the paths of the pod sandbox program, runc, a static
	// busybox, and slipway. Executable is /proc/self/exe, so that an upgrade of the file has no
	// effect.
	Pause, Runc, Busybox, Executable string
	// HAProxy returns the path of HAProxy, or an error if HAProxy is unsuitable. If it is nil, the
	// router image is not created.
	HAProxy func() (string, error)
	// Keepalived returns the paths of keepalived and the programs that its scripts use, or an error
	// if a program is missing. If it is nil, the ipfailover image is not created.
	Keepalived func() ([]string, error)
	// Archives is a directory that contains image archives. New and changed archives are loaded.
	// The directory need not exist.
	Archives string
	// NodeReady is closed when the node has started. Large images are loaded after that, or
	// immediately if NodeReady is nil.
	NodeReady <-chan struct{}
	// HasDeployer, if not nil, is called repeatedly after the deployer image has been loaded, until
	// it succeeds.
	HasDeployer func(context.Context) error
}

// Name returns the component's name.
func (l Loader) Name() string { return "images" }

// Run loads the pod sandbox image and the tools image, and then calls ready, because pods can now
// start. After that, it loads the rest of the images one by one. It fails only if it cannot load
// the pod sandbox image. Errors from other images are logged. It returns when ctx is done.
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
	if l.NodeReady != nil {
		select {
		case <-l.NodeReady:
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
	l.try(ctx, l.loadDescheduler)
	<-ctx.Done()
	return nil
}

// try runs a step. It only logs the step's error, because the node works even without the image.
func (l Loader) try(ctx context.Context, step func(context.Context) error) {
	if err := step(ctx); err != nil && ctx.Err() == nil {
		slog.ErrorContext(ctx, "cannot load image", "component", l.Name(), "error", err)
	}
}

// loadPause waits for containerd, loads the pod sandbox image, and waits until the CRI plugin finds
// the image.
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
			// Allow enough time for connecting, because a busy machine responds slowly.
			Backoff:           backoff.Config{BaseDelay: pollInterval, Multiplier: 1, MaxDelay: pollInterval},
			MinConnectTimeout: 5 * time.Second,
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
	// The plugin receives an event about the image. If a pod started before the plugin has handled
	// the event, the plugin would look for the image in a registry, so wait.
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

// loadDeployer loads the deployer image, and calls HasDeployer.
func (l Loader) loadDeployer(ctx context.Context) error {
	deployer, err := Deployer()
	if err != nil {
		return err
	}
	if err := l.load(ctx, deployer); err != nil || l.HasDeployer == nil {
		return err
	}
	return l.reportDeployer(ctx)
}

// reportDeployer calls HasDeployer until it succeeds. It logs an error only if the error differs
// from the previous error.
func (l Loader) reportDeployer(ctx context.Context) error {
	logged := ""
	for err := l.HasDeployer(ctx); err != nil; err = l.HasDeployer(ctx) {
		if reason := err.Error(); reason != logged {
			slog.WarnContext(ctx, "cannot mark node as having the deployer image", "component", l.Name(), "error", err)
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

// loadRouter loads the router image. It is a no-op if the host has no HAProxy, because the node's
// own router already reports that HAProxy is missing.
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

// loadFailover loads the ipfailover image. It is a no-op if the host has no keepalived, because the
// pods report that the image is missing.
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

func (l Loader) loadDescheduler(ctx context.Context) error {
	descheduler, err := Descheduler(l.Busybox)
	if err != nil {
		return err
	}
	return l.load(ctx, descheduler)
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
		slog.InfoContext(ctx, "loaded image", "component", l.Name(), "image", img.Name, "duration", time.Since(start))
	}
	return err
}

// loadArchives loads new and changed archives.
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
	archives, err := archivesOf(ctx, c)
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
		if archives[key] {
			continue
		}
		path := filepath.Join(l.Archives, file.Name())
		names, err := l.Store.loadArchive(ctx, c, path, map[string]string{labelPinned: pinned, labelArchive: key}, nil)
		if err != nil {
			errs = append(errs, fmt.Errorf("load images of %q: %w", path, err))
			continue
		}
		slog.InfoContext(ctx, "loaded images", "component", l.Name(), "path", path, "images", names)
	}
	return errors.Join(errs...)
}

// archivesOf returns the archives from which the images in the store were loaded, according to
// labelArchive.
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

// poll returns nil when done returns true, or ctx's cause if ctx is done first.
func poll(ctx context.Context, done func() bool) error {
	for !done() {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pollInterval):
		}
	}
	return nil
}
