package csi

import (
	"context"
	"path/filepath"
	"sync"

	"github.com/slipway-platform/slipway/storage/csi/driver"
	"github.com/slipway-platform/slipway/storage/csi/register"
)

// Embedded runs a driver in this process. Like the sidecar containers in a driver's pod, it
// registers the driver with the kubelet and runs its controller.
type Embedded struct {
	// Driver is the driver that serves on Socket.
	Driver interface {
		Run(ctx context.Context, ready func()) error
	}
	Socket string
	// KubeletDir is the kubelet's root directory.
	KubeletDir string
	// Controller serves the driver on Socket.
	Controller *Controller
	// Others lists additional functions that run while the driver is serving requests.
	Others []func(ctx context.Context) error
}

// Run runs the driver until ctx is done. Once the driver is serving requests, Run calls ready and
// starts the registration, the controller and the functions in Others. The first error stops all of
// them, and Run returns it.
func (e *Embedded) Run(ctx context.Context, ready func()) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	connection, err := driver.Dial(e.Socket, driver.Options{})
	if err != nil {
		return err
	}
	defer func() { _ = connection.Close() }()
	registrar := register.Registrar{
		Driver: connection, Endpoint: e.Socket, Dir: filepath.Join(e.KubeletDir, "plugins_registry"),
	}
	var group sync.WaitGroup
	defer group.Wait()
	start := func(run func(context.Context) error) {
		group.Go(func() {
			if err := run(ctx); err != nil {
				cancel(err)
			}
		})
	}
	start(func(ctx context.Context) error {
		return e.Driver.Run(ctx, func() {
			ready()
			start(func(ctx context.Context) error { return registrar.Run(ctx, func() {}) })
			start(e.control)
			for _, other := range e.Others {
				start(other)
			}
		})
	})
	<-ctx.Done()
	return context.Cause(ctx)
}

// control waits until the API server serves snapshots, then runs the controller. It must wait
// because the controller checks only once whether the API server serves snapshots, and on the first
// start, the snapshot CRDs might not exist yet.
func (e *Embedded) control(ctx context.Context) error {
	if AwaitSnapshots(ctx, e.Controller.Config) != nil {
		return nil
	}
	return e.Controller.Run(ctx, func() {})
}
