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

// offer is one socket in kubelet's directory, at which kubelet asks for the driver and says what came of it.
type offer struct {
	path   string
	info   *registration.PluginInfo
	asked  chan struct{}                         // holds a token once kubelet has asked
	status chan *registration.RegistrationStatus // the last one that nobody has taken

	server *grpc.Server
	served sync.WaitGroup
	registration.UnimplementedRegistrationServer
}

func newOffer(path, driver, endpoint string) *offer {
	return &offer{
		path: path,
		info: &registration.PluginInfo{
			Type: registration.CSIPlugin, Name: driver, Endpoint: endpoint, SupportedVersions: []string{"1.0.0"},
		},
		asked:  make(chan struct{}, 1),
		status: make(chan *registration.RegistrationStatus, 1),
	}
}

// open listens at a name that kubelet overlooks and then gives the socket its own: kubelet never meets one that nobody serves.
func (o *offer) open() error {
	hidden := filepath.Join(filepath.Dir(o.path), "."+filepath.Base(o.path))
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: hidden, Net: "unix"})
	if errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("listen for kubelet at %q: the path of a Unix socket has 107 characters at most; shorten the data directory or the driver's name", hidden)
	}
	if err != nil {
		return fmt.Errorf("listen for kubelet: %w", err)
	}
	listener.SetUnlinkOnClose(false)
	o.server = grpc.NewServer()
	registration.RegisterRegistrationServer(o.server, o)
	o.served.Go(func() { _ = o.server.Serve(listener) }) // ends with an error only when it is stopped
	if err := os.Rename(hidden, o.path); err != nil {
		return errors.Join(fmt.Errorf("show socket to kubelet: %w", err), o.close())
	}
	return nil
}

// close takes the offer back; kubelet then forgets the driver.
func (o *offer) close() error {
	err := os.Remove(o.path)
	o.server.GracefulStop() // kubelet's word is answered
	o.served.Wait()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove socket of the registration: %w", err)
	}
	return nil
}

// there tells whether the socket is still in kubelet's directory.
func (o *offer) there() bool {
	_, err := os.Lstat(o.path)
	return err == nil
}

// GetInfo is kubelet's question who registers.
func (o *offer) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	select {
	case o.asked <- struct{}{}:
	default:
	}
	return o.info, nil
}

// NotifyRegistrationStatus is kubelet's word on what came of it.
func (o *offer) NotifyRegistrationStatus(_ context.Context, status *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	select {
	case <-o.status: // an older one that is not true any more
	default:
	}
	o.status <- status
	return &registration.RegistrationStatusResponse{}, nil
}

// socketName is the name of the socket of an attempt, counted from 1. The first is the one that people know from the
// community's registrar.
func socketName(driver string, attempt int) string {
	if attempt == 1 {
		return driver + "-reg.sock"
	}
	return driver + "-reg-" + strconv.Itoa(attempt) + ".sock"
}
