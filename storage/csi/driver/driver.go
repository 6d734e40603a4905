// Package driver implements a client for one CSI driver on a Unix socket. It adds deadlines, reads
// the driver's description and interprets the driver's errors. It does not depend on Kubernetes.
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

// Options configures driver calls.
type Options struct {
	// Timeout is the timeout of each call, including the time spent waiting for a driver that is
	// restarting. The default is 30 seconds.
	Timeout time.Duration
	// Retry is the maximum retry interval of WaitReady. The default is 1 second.
	Retry time.Duration
	// Observe, if set, is called for each completed call.
	Observe func(Call)
	// Dial lists additional options for the connection, such as fault injection in tests.
	Dial []grpc.DialOption
}

const (
	defaultTimeout = 30 * time.Second
	defaultRetry   = time.Second // connecting to a local socket is cheap
)

// Driver is the connection to one driver. It reconnects when the driver restarts, and calls wait
// for the reconnection until Close is called.
type Driver struct {
	// Address is the socket's path.
	Address string

	options    Options
	connection *grpc.ClientConn
	name       driverName
}

// Dial prepares the connection to a driver. address is a Unix socket, in the form
// "unix:///run/csi.sock" or a path. Dial does not wait for the driver: use WaitReady to wait.
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
	// Reconnect quickly after the driver has restarted, so that calls are not delayed for long.
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

// Identity returns the identity service's client.
func (d *Driver) Identity() csi.IdentityClient { return csi.NewIdentityClient(d.connection) }

// Controller returns the client for the controller service: provisioning, attaching, resizing and
// snapshots.
func (d *Driver) Controller() csi.ControllerClient { return csi.NewControllerClient(d.connection) }

// GroupController returns the client for the group controller service: snapshots of multiple
// volumes.
func (d *Driver) GroupController() csi.GroupControllerClient {
	return csi.NewGroupControllerClient(d.connection)
}

// Node returns the client for the node service. Only the kubelet and the registrar call it.
func (d *Driver) Node() csi.NodeClient { return csi.NewNodeClient(d.connection) }
