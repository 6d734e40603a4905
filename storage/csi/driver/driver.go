// Package driver is the connection to one CSI driver over its Unix domain socket: calls with a deadline, what the driver can do, what its
// errors mean. It knows nothing of Kubernetes.
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

// Options are how a driver is called.
type Options struct {
	// Timeout is the deadline of each call; 0 means 30 seconds. A call waits as long for a driver that is being restarted.
	Timeout time.Duration
	// Retry is the longest time between two questions of Await to a driver that answers with errors; 0 means a second.
	Retry time.Duration
	// Observe, if set, is told of each call when it has ended.
	Observe func(Call)
	// Dial are further options of the connection; tests inject faults with them.
	Dial []grpc.DialOption
}

const (
	defaultTimeout = 30 * time.Second
	defaultRetry   = time.Second // a local socket costs nothing to try
)

// Driver is the connection to one driver. It is made again whenever the driver is restarted, for as long as it is not closed; calls that are made
// meanwhile wait for it.
type Driver struct {
	// Address is the path of the socket.
	Address string

	options    Options
	connection *grpc.ClientConn
	name       names
}

// Dial prepares the connection to the driver at the address of a Unix socket, "unix:///run/csi.sock" or a path alone. It does not wait for the
// driver; Await does.
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
	// Restarts are noticed at once and calls never wait long after one.
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
		return "", fmt.Errorf("connect to CSI driver at %q: a driver is reached over a Unix socket only; give its path, such as unix:///run/csi/csi.sock", address)
	}
	return filepath.Clean(path), nil
}

// Close ends the connection and every call.
func (d *Driver) Close() error { return d.connection.Close() }

// Identity is the service that says who the driver is.
func (d *Driver) Identity() csi.IdentityClient { return csi.NewIdentityClient(d.connection) }

// Controller is the service that provisions, attaches, resizes and snapshots.
func (d *Driver) Controller() csi.ControllerClient { return csi.NewControllerClient(d.connection) }

// GroupController is the service that takes snapshots of several volumes at once.
func (d *Driver) GroupController() csi.GroupControllerClient {
	return csi.NewGroupControllerClient(d.connection)
}

// Node is the service that mounts, which only kubelet and whoever registers the driver with it call.
func (d *Driver) Node() csi.NodeClient { return csi.NewNodeClient(d.connection) }
