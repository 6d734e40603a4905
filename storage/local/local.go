// Package local is the CSI driver local.csi.slipway.io: volumes on the node's own disk that really hold their size.
//
// A volume is a sparse file, its image, that is attached as a loop device; a file system is made in it when it is created, never later.
// What is known of it is one JSON file, its record, which is written before and after each step, so that a process may be killed at any
// moment: volumes that were half made or half deleted are recognized by the state in their record, and are gone after the next start. A record that
// cannot be read is an error of its volume that names the file, and its image is left alone.
//
//	<Dir>/volumes/<name>.json, <name>.img     a volume
//	<Dir>/snapshots/<name>.json, <name>.img   a snapshot
//	<Dir>/groups/<name>.json                  a group of snapshots
//	<Dir>/lock                                held by the process that serves the directory
//
// The package knows CSI and not Kubernetes. Its wire is the specification's, version 1.13
// (https://github.com/container-storage-interface/spec).
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

// DriverName is the driver's name, by which classes and volumes refer to it.
const DriverName = "local.csi.slipway.io"

// TopologyKey is the label of nodes and volumes that says where a volume is.
const TopologyKey = DriverName + "/node"

// Driver is the driver on one node. It is a part: Run serves until the end.
type Driver struct {
	// Node is the node's name. It is part of every volume's handle.
	Node string
	// Dir is the driver's directory; it is created if it does not exist.
	Dir string
	// Socket is the path of the Unix socket to serve.
	Socket string
	// Reserve is how much of the disk of Dir is not given to volumes.
	Reserve Reserve
	// Overcommit is how many times the rest of the disk is promised; 0 means once, so that every volume can be filled.
	Overcommit float64

	busy      busy
	caching   sync.Mutex // held while a cache is made, given to a pod or removed
	promising sync.Mutex // held from a look at the capacity until the promise is in a record
	volumes   store[volume]
	snapshots store[snapshot]
	groups    store[group]
	shares    bool // images can share blocks

	csi.UnimplementedIdentityServer
	csi.UnimplementedControllerServer
	csi.UnimplementedGroupControllerServer
	csi.UnimplementedNodeServer
}

// Name is the part's name.
func (d *Driver) Name() string { return "local-storage" }

// Run cleans up after the last process and serves the socket until ctx ends. Operations that a caller no longer waits for go on; they
// are broken off when ctx ends.
func (d *Driver) Run(ctx context.Context, ready func()) error {
	release, err := d.open()
	if err != nil {
		return fmt.Errorf("start local storage in %q: %w", d.Dir, err)
	}
	defer release()
	for _, problem := range d.recover() {
		slog.Error("local storage needs a person", "error", problem)
	}
	listener, err := listen(d.Socket)
	if err != nil {
		return err
	}
	server := d.server(ctx)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	ready()
	select {
	case err = <-served:
		return fmt.Errorf("serve %q: %w", d.Socket, err)
	case <-ctx.Done():
		server.Stop()
		<-served
		return nil
	}
}

// open makes the directory, takes it for this process and prepares the stores. The returned function gives it back.
func (d *Driver) open() (release func(), err error) {
	if err := os.MkdirAll(d.Dir, 0o700); err != nil {
		return nil, err
	}
	// The kernel names the images of loop devices by their real path.
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
		return nil, fmt.Errorf("another process serves the directory: %w", err)
	}
	if d.shares, err = image.Shares(dir); err != nil {
		lock.Close()
		return nil, err
	}
	return func() { lock.Close() }, nil
}

// recover ends what the last process was killed in. What it cannot end are problems of single volumes, with which the others have nothing to do.
func (d *Driver) recover() []error {
	var problems []error
	problems = append(problems, d.thawAll()...)
	for name, v := range d.volumes.all(&problems) {
		if v.State != stateReady || d.abandoned(v) {
			problems = append(problems, d.removeVolume(name))
		}
		problems = append(problems, os.RemoveAll(d.volumes.larger(name)))
	}
	for name, g := range d.groups.all(&problems) {
		if g.State != stateReady {
			problems = append(problems, d.removeGroup(name, g))
		}
	}
	for name, s := range d.snapshots.all(&problems) {
		if s.State != stateReady {
			problems = append(problems, d.snapshots.remove(name))
		}
	}
	problems = append(problems, d.detachDeleted())
	problems = append(problems, d.volumes.strays(), d.snapshots.strays())
	return nonNil(problems)
}

// thawAll lets writers go on that a killed process kept waiting.
func (d *Driver) thawAll() (problems []error) {
	devices, err := loop.List(d.volumes.dir)
	if err != nil {
		return []error{err}
	}
	for _, device := range devices {
		mounts, err := filesystem.Of(device.Path)
		problems = append(problems, err)
		for _, m := range mounts {
			if filesystem.Type(m.FSType).Known() {
				problems = append(problems, filesystem.Thaw(m.Mountpoint))
				break // every mount is of the same file system
			}
		}
	}
	return problems
}

// detachDeleted ends the devices of volumes that are gone.
func (d *Driver) detachDeleted() error {
	devices, err := loop.List(d.volumes.dir)
	for _, device := range devices {
		if device.Deleted {
			err = errors.Join(err, loop.Detach(device.Path))
		}
	}
	return err
}

// listen makes the socket, in place of one that a killed process left.
func listen(path string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return nil, fmt.Errorf("make directory of socket: %w", err)
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

// server is the gRPC server of the driver's services.
func (d *Driver) server(ctx context.Context) *grpc.Server {
	// A handler works under the driver's context instead of its caller's: what has been begun goes on when the caller no longer waits, so that a long
	// copy is found done, and not begun again, when the call is repeated.
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
