// Package local implements the CSI driver local.csi.slipway.io, which provides volumes with an
// enforced size on the node's own disk.
//
// A volume is a sparse file, its image, which is attached as a loop device. The file system is
// created with the volume. A volume's metadata is one JSON file, its record. The record is written
// before and after each step, so that the process can be killed at any time. The state in the
// record identifies volumes that are partially created or deleted, and the next startup removes
// these volumes. If a record cannot be read, operations on its volume fail with an error that
// contains the file's path, and the image is not touched.
//
//	<Dir>/volumes/<name>.json, <name>.img     a volume
//	<Dir>/snapshots/<name>.json, <name>.img   a snapshot
//	<Dir>/groups/<name>.json                  a group of snapshots
//	<Dir>/lock                                locked by the process that serves the directory
//
// The package implements CSI and does not depend on Kubernetes. It implements version 1.13 of the
// specification (https://github.com/container-storage-interface/spec).
package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"

	"github.com/slipway-platform/slipway/storage/local/filesystem"
	"github.com/slipway-platform/slipway/storage/local/image"
	"github.com/slipway-platform/slipway/storage/local/loop"
)

// DriverName is the driver's name in StorageClasses and volumes.
const DriverName = "local.csi.slipway.io"

// TopologyKey is the CSI topology key for nodes and volumes. Its value identifies the node (see
// topologyValue).
const TopologyKey = DriverName + "/node"

// Driver is the driver on one node. It is a component.
type Driver struct {
	// Node is the node's name. It is part of every volume's handle.
	Node string
	// Dir is the driver's directory. It is created if it does not exist.
	Dir string
	// Socket is the path of the driver's Unix socket.
	Socket string
	// Reserve is the part of Dir's disk that is not available to volumes.
	Reserve Reserve
	// Overcommit is the factor by which the remaining disk space can be overcommitted. 0 means 1.
	// With a factor of 1, every volume can be filled.
	Overcommit float64

	locks        keyedLock
	cacheMu      sync.Mutex // held while a cache is created, published or removed
	capacityMu   sync.Mutex // held from a capacity check until the record is saved
	volumes      store[volume]
	snapshots    store[snapshot]
	groups       store[group]
	sharesBlocks bool // images can share blocks

	csi.UnimplementedIdentityServer
	csi.UnimplementedControllerServer
	csi.UnimplementedGroupControllerServer
	csi.UnimplementedNodeServer
}

// Name returns the component's name.
func (d *Driver) Name() string { return "local-storage" }

// Run cleans up after the previous process and serves the socket until ctx is done. If a caller
// cancels an operation, the operation continues. Operations are canceled when ctx is done.
func (d *Driver) Run(ctx context.Context, ready func()) error {
	release, err := d.open()
	if err != nil {
		return fmt.Errorf("start local storage in %q: %w", d.Dir, err)
	}
	defer release()
	for _, recoverErr := range d.recover() {
		slog.Error("local storage needs manual repair", "error", recoverErr)
	}
	listener, err := listen(d.Socket)
	if err != nil {
		return err
	}
	server := d.server(ctx)
	serveErr := make(chan error, 1)
	go func() { serveErr <- server.Serve(listener) }()
	ready()
	select {
	case err = <-serveErr:
		return fmt.Errorf("serve %q: %w", d.Socket, err)
	case <-ctx.Done():
		server.Stop()
		<-serveErr
		return nil
	}
}

// open creates and locks the directory, and prepares the stores. release unlocks the directory.
func (d *Driver) open() (release func(), err error) {
	if err := os.MkdirAll(d.Dir, 0o700); err != nil {
		return nil, err
	}
	// The kernel reports the real paths of loop device images.
	dir, err := filepath.EvalSymlinks(d.Dir)
	if err != nil {
		return nil, err
	}
	d.volumes, d.snapshots, d.groups = openStore[volume](dir, "volumes"), openStore[snapshot](dir, "snapshots"), openStore[group](dir, "groups")
	for _, dir := range []string{d.volumes.dir, d.snapshots.dir, d.groups.dir} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		lock.Close()
		return nil, fmt.Errorf("another process already uses the directory: %w", err)
	}
	if d.sharesBlocks, err = image.SharesBlocks(dir); err != nil {
		lock.Close()
		return nil, err
	}
	return func() { lock.Close() }, nil
}

// recover completes the operations during which the previous process was killed. It returns errors
// that concern individual volumes and do not affect other volumes.
func (d *Driver) recover() []error {
	var errs []error
	errs = append(errs, d.thawAll()...)
	for name, v := range d.volumes.all(&errs) {
		if v.State != stateReady || d.podIsGone(v) {
			errs = append(errs, d.removeVolume(name))
		}
		errs = append(errs, os.RemoveAll(d.volumes.expandedImage(name)))
	}
	for name, g := range d.groups.all(&errs) {
		if g.State != stateReady {
			errs = append(errs, d.removeGroup(name, g))
		}
	}
	for name, s := range d.snapshots.all(&errs) {
		if s.State != stateReady {
			errs = append(errs, d.snapshots.remove(name))
		}
	}
	errs = append(errs, d.detachDeleted())
	errs = append(errs, d.volumes.checkOrphans(), d.snapshots.checkOrphans())
	return nonNil(errs)
}

// thawAll thaws the file systems that a killed process left frozen.
func (d *Driver) thawAll() (errs []error) {
	devices, err := loop.List(d.volumes.dir)
	if err != nil {
		return []error{err}
	}
	for _, device := range devices {
		mounts, err := filesystem.MountsOf(device.Path)
		errs = append(errs, err)
		for _, m := range mounts {
			if filesystem.Type(m.FSType).Supported() {
				errs = append(errs, filesystem.Thaw(m.Mountpoint))
				break // all of the device's mounts have the same file system
			}
		}
	}
	return errs
}

// detachDeleted detaches the devices of deleted volumes.
func (d *Driver) detachDeleted() error {
	devices, err := loop.List(d.volumes.dir)
	for _, device := range devices {
		if device.Deleted {
			err = errors.Join(err, loop.Detach(device.Path))
		}
	}
	return err
}

// listen creates the socket. It replaces a socket left behind by a killed process.
func listen(path string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return nil, fmt.Errorf("create socket directory: %w", err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("replace socket: %w", err)
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("listen on socket: %w", err)
	}
	return listener, nil
}

// server returns the gRPC server with the driver's services.
func (d *Driver) server(ctx context.Context) *grpc.Server {
	// Run handlers with the driver's context instead of the caller's context. An operation
	// continues if its caller gives up, so that a repeated call finds a long copy complete instead
	// of starting it again.
	detach := func(_ context.Context, request any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		response, err := handle(ctx, request)
		return response, statusOf(err)
	}
	server := grpc.NewServer(grpc.UnaryInterceptor(detach), grpc.WaitForHandlers(true))
	csi.RegisterIdentityServer(server, d)
	csi.RegisterControllerServer(server, d)
	csi.RegisterGroupControllerServer(server, d)
	csi.RegisterNodeServer(server, d)
	return server
}

func nonNil(errs []error) (real []error) {
	for _, err := range errs {
		if err != nil {
			real = append(real, err)
		}
	}
	return real
}
