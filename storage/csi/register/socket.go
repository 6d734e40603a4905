package register

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// registrationSocket is a socket in the kubelet's directory, through which the kubelet queries the
// driver and reports the registration result.
type registrationSocket struct {
	path    string
	info    *registration.PluginInfo
	queried chan struct{}                         // has a token if the kubelet has queried the driver
	status  chan *registration.RegistrationStatus // the latest status, until it is received

	server  *grpc.Server
	serving sync.WaitGroup
	registration.UnimplementedRegistrationServer
}

func newSocket(path, driver, endpoint string) *registrationSocket {
	return &registrationSocket{
		path: path,
		info: &registration.PluginInfo{
			Type: registration.CSIPlugin, Name: driver, Endpoint: endpoint, SupportedVersions: []string{"1.0.0"},
		},
		queried: make(chan struct{}, 1),
		status:  make(chan *registration.RegistrationStatus, 1),
	}
}

// open listens on a temporary name, which the kubelet ignores, then renames the socket, so that the
// kubelet never finds a socket without a server.
func (o *registrationSocket) open() error {
	temporary := filepath.Join(filepath.Dir(o.path), "."+filepath.Base(o.path))
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: temporary, Net: "unix"})
	if errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("listen for the kubelet at %q: the path of a Unix socket has at most 107 characters; shorten the data directory or the driver's name", temporary)
	}
	if err != nil {
		return fmt.Errorf("listen for the kubelet: %w", err)
	}
	listener.SetUnlinkOnClose(false)
	o.server = grpc.NewServer()
	registration.RegisterRegistrationServer(o.server, o)
	o.serving.Go(func() { _ = o.server.Serve(listener) }) // returns an error only when stopped
	if err := os.Rename(temporary, o.path); err != nil {
		return errors.Join(fmt.Errorf("rename socket for kubelet: %w", err), o.close())
	}
	return nil
}

// close removes the socket. The kubelet then unregisters the driver.
func (o *registrationSocket) close() error {
	err := os.Remove(o.path)
	o.server.GracefulStop() // waits for the kubelet's current calls
	o.serving.Wait()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove registration socket: %w", err)
	}
	return nil
}

// exists reports whether the socket is still in the kubelet's directory.
func (o *registrationSocket) exists() bool {
	_, err := os.Lstat(o.path)
	return err == nil
}

// GetInfo returns the driver's name and endpoint to the kubelet.
func (o *registrationSocket) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	select {
	case o.queried <- struct{}{}:
	default:
	}
	return o.info, nil
}

// NotifyRegistrationStatus receives the registration result from the kubelet.
func (o *registrationSocket) NotifyRegistrationStatus(_ context.Context, status *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	select {
	case <-o.status: // discard an outdated status
	default:
	}
	o.status <- status
	return &registration.RegistrationStatusResponse{}, nil
}

// socketName returns the name of an attempt's socket. Attempts are numbered from 1. For attempt 1,
// the name is the same as in the community's registrar.
func socketName(driver string, attempt int) string {
	if attempt == 1 {
		return driver + "-reg.sock"
	}
	return driver + "-reg-" + strconv.Itoa(attempt) + ".sock"
}
