// Package driver is a client for one CSI driver on a Unix socket, with deadlines, the driver's
// description and the meaning of its errors. It does not depend on Kubernetes.
package driver

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
)

// Options configure the calls of a driver.
type Options struct {
	// Timeout is the deadline of each call, including the wait for a driver that is restarting. The
	// default is 30 seconds.
	Timeout time.Duration
	// Retry is the maximum retry interval of WaitReady. The default is one second.
	Retry time.Duration
	// Observe, if set, receives each completed call.
	Observe func(Call)
	// Dial contains more options for the connection, such as fault injection in tests.
	Dial []grpc.DialOption
}

const (
	defaultTimeout = 30 * time.Second
	defaultRetry   = time.Second // connecting to a local socket is cheap
)

// Driver is the connection to one driver. It reconnects when the driver restarts, and calls wait
// for that, until Close.
type Driver struct {
	// Address is the path of the socket.
	Address string

	options    Options
	connection *grpc.ClientConn
	name       driverName
}

// Dial prepares the connection to a driver. address is a Unix socket, "unix:///run/csi.sock" or a
// path. Dial does not wait for the driver; use WaitReady for that.
func Dial(address string, options Options) (*Driver, error) {
	path, err := socketPath(address)
	if err != nil {
		return nil, err
	}
	if options.Timeout == 0 {
		options.Timeout = defaultTimeout
	}
	if options.Retry == 0 {
		options.Retry = defaultRetry
	}
	d := &Driver{Address: path, options: options}
	// Notice restarts immediately and keep the delay of calls after a restart short.
	retry := backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.5, Jitter: 0.2, MaxDelay: defaultRetry}
	dial := append([]grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: retry, MinConnectTimeout: time.Second}),
		grpc.WithIdleTimeout(0),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true)),
		grpc.WithChainUnaryInterceptor(d.call),
	}, options.Dial...)
	d.connection, err = grpc.NewClient("unix:"+path, dial...)
	if err != nil {
		return nil, fmt.Errorf("connect to CSI driver at %q: %w", path, err)
	}
	return d, nil
}

func socketPath(address string) (string, error) {
	path := strings.TrimPrefix(strings.TrimPrefix(address, "unix:"), "//")
	if !filepath.IsAbs(path) {
		return "", fmt.Errorf("connect to CSI driver at %q: a driver must have a Unix socket; set its path, such as unix:///run/csi/csi.sock", address)
	}
	return filepath.Clean(path), nil
}

// Close closes the connection and cancels all calls.
func (d *Driver) Close() error { return d.connection.Close() }

// Identity returns the client of the identity service.
func (d *Driver) Identity() csi.IdentityClient { return csi.NewIdentityClient(d.connection) }

// Controller returns the client of the controller service: provisioning, attaching, resizing and
// snapshots.
func (d *Driver) Controller() csi.ControllerClient { return csi.NewControllerClient(d.connection) }

// GroupController returns the client of the group controller service: snapshots of several volumes.
func (d *Driver) GroupController() csi.GroupControllerClient {
	return csi.NewGroupControllerClient(d.connection)
}

// Node returns the client of the node service. Only the kubelet and the registrar call it.
func (d *Driver) Node() csi.NodeClient { return csi.NewNodeClient(d.connection) }
