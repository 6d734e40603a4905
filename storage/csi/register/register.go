// Package register registers a CSI driver with the kubelet, through the kubelet's plugins_registry
// directory, and with the cluster, through a CSIDriver object. The driver itself does not depend on
// Kubernetes. The package replaces the community's node-driver-registrar and the design document's
// cluster-driver-registrar (csi-in-kubernetes, "Kubelet to CSI Driver Communication" and
// "Recommended Mechanism for Deploying CSI Drivers").
package register

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/slipway-platform/slipway/storage/csi/driver"
)

const (
	// queryTimeout is how long to wait for the kubelet's query of a new path. The kubelet scans the
	// directory every second, but after a failure it waits up to two minutes before it tries the
	// same path again (exponential backoff). A new path has no backoff. The timeout grows with each
	// attempt, up to maxQueryTimeout.
	queryTimeout    = 5 * time.Second
	maxQueryTimeout = time.Minute
	callTimeout     = 10 * time.Second
	checkInterval   = 10 * time.Second
)

// Driver is the connection to a CSI driver. It reconnects when the driver restarts.
type Driver interface {
	Identity() csi.IdentityClient
	Node() csi.NodeClient
}

// Registrar is the component that keeps one driver registered with the kubelet on this node across
// restarts of the driver and the kubelet. When the Registrar stops, the driver is unregistered and
// the kubelet removes it from the CSINode.
type Registrar struct {
	// Driver is the driver to register.
	Driver Driver
	// Endpoint is the absolute path of the driver's socket, as seen by the kubelet.
	Endpoint string
	// Dir is the kubelet's plugins_registry directory, as seen by this process.
	Dir string
	// Interval is the interval at which the driver's name and node info are checked for changes.
	// The default is 10 s.
	Interval time.Duration

	mu    sync.Mutex
	state State
}

// State is a driver's registration state.
type State struct {
	Driver     string // the driver's name; empty until the driver has responded
	Registered bool
	Problem    string // error from the driver or from the kubelet
}

// Name returns the component's name.
func (r *Registrar) Name() string { return "csi-registrar " + r.Endpoint }

// State returns the current state.
func (r *Registrar) State() State {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state
}

// Run registers the driver when the driver responds. It is ready immediately, because the driver
// and the kubelet might not be running yet. It returns an error only if it cannot create the
// directory.
func (r *Registrar) Run(ctx context.Context, ready func()) error {
	if err := os.MkdirAll(r.Dir, 0o750); err != nil {
		return fmt.Errorf("create directory for registrations: %w", err)
	}
	ready()
	backoff := newBackoff()
	for attempt := 1; ctx.Err() == nil; {
		accepted, err := r.register(ctx, attempt)
		attempt++
		if accepted { // the kubelet has no backoff for a path that it has accepted
			attempt, backoff = 1, newBackoff()
		}
		if err == nil || ctx.Err() != nil {
			continue // register the driver again
		}
		r.setProblem(err)
		slog.Warn("cannot register CSI driver", "endpoint", r.Endpoint, "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(backoff.Step()):
		}
	}
	return nil
}

func newBackoff() wait.Backoff {
	return wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.1, Steps: 5, Cap: 30 * time.Second}
}

// register queries the driver and registers it with the kubelet.
func (r *Registrar) register(ctx context.Context, attempt int) (accepted bool, err error) {
	info, err := r.queryDriver(ctx)
	if err != nil {
		return false, err
	}
	return r.announce(ctx, info, attempt)
}

func (r *Registrar) setProblem(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state.Registered, r.state.Problem = false, err.Error()
}

func (r *Registrar) set(s State) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state = s
}

// driverInfo holds a driver's name and node info. If either of them changes, the driver must be
// registered again.
type driverInfo struct {
	name string
	node *csi.NodeGetInfoResponse // nil if the driver returns an error, which the kubelet then reports
}

func (i driverInfo) equal(other driverInfo) bool {
	return i.name == other.name && proto.Equal(i.node, other.node)
}

// queryDriver queries the driver's name and node info. If the name is invalid, it returns an error
// without querying the node info.
func (r *Registrar) queryDriver(ctx context.Context) (driverInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	info, err := r.Driver.Identity().GetPluginInfo(ctx, &csi.GetPluginInfoRequest{})
	if err != nil {
		return driverInfo{}, fmt.Errorf("get name of driver at %q: %w", r.Endpoint, err)
	}
	if err := driver.CheckName(info.GetName()); err != nil {
		return driverInfo{}, err
	}
	node, err := r.Driver.Node().NodeGetInfo(ctx, &csi.NodeGetInfoRequest{})
	if err != nil {
		node = nil
	}
	return driverInfo{name: info.GetName(), node: node}, nil
}

// announce offers the driver to the kubelet. It returns nil if the driver or its socket has
// changed, or if ctx is done. It returns an error if the kubelet does not query the driver or does
// not accept it. accepted reports whether the kubelet accepted the driver before announce returned.
func (r *Registrar) announce(ctx context.Context, info driverInfo, attempt int) (accepted bool, err error) {
	if err := removeStale(r.Dir, info.name); err != nil {
		return false, err
	}
	socket := newSocket(filepath.Join(r.Dir, socketName(info.name, attempt)), info.name, r.Endpoint)
	if err := socket.open(); err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, socket.close()) }()
	r.set(State{Driver: info.name, Problem: fmt.Sprintf("the kubelet has not queried the driver in %q", r.Dir)})
	timeout := queryTimeout
	if attempt > 1 {
		timeout = min(queryTimeout<<min(attempt, 10), maxQueryTimeout)
	}
	return r.monitor(ctx, info, socket, timeout)
}

// monitor waits until the driver must be registered again.
func (r *Registrar) monitor(ctx context.Context, info driverInfo, socket *registrationSocket, timeout time.Duration) (accepted bool, err error) {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	ticker := time.NewTicker(orDefault(r.Interval, checkInterval))
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return accepted, nil
		case <-socket.queried:
			timer.Stop()
		case <-timer.C:
			return accepted, fmt.Errorf("the kubelet does not query the driver in %q; check that this is the directory plugins_registry below the kubelet's directory", r.Dir)
		case status := <-socket.status:
			if !status.GetPluginRegistered() {
				return accepted, fmt.Errorf("the kubelet rejects CSI driver %q: %s", info.name, status.GetError())
			}
			accepted = true
			r.set(State{Driver: info.name, Registered: true})
			slog.Info("CSI driver is registered", "driver", info.name, "endpoint", r.Endpoint)
		case <-ticker.C:
			if r.changed(ctx, info) || !socket.exists() {
				return accepted, nil
			}
		}
	}
}

// changed reports whether the driver's name or node info has changed. If the driver does not
// respond, changed returns false: the driver might be restarting, and the kubelet can use the same
// socket again.
func (r *Registrar) changed(ctx context.Context, previous driverInfo) bool {
	current, err := r.queryDriver(ctx)
	return err == nil && current.node != nil && !current.equal(previous)
}

// removeStale removes the driver's sockets that earlier registrars left behind.
func removeStale(dir, driver string) error {
	for _, pattern := range []string{"", "."} {
		paths, err := filepath.Glob(filepath.Join(dir, pattern+driver+"-reg*.sock"))
		if err != nil {
			return fmt.Errorf("find sockets of earlier registrations: %w", err)
		}
		for _, path := range paths {
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("remove socket of an earlier registration: %w", err)
			}
		}
	}
	return nil
}

func orDefault(d, fallback time.Duration) time.Duration {
	if d == 0 {
		return fallback
	}
	return d
}
