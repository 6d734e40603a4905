// Package register makes a CSI driver known: to kubelet on a node, by the plug-in registration that kubelet watches for in
// its directory plugins_registry, and to the cluster as a CSIDriver object. The driver itself knows nothing of Kubernetes.
// It does the work of the community's node-driver-registrar and of the cluster-driver-registrar of the design document
// (csi-in-kubernetes, "Kubelet to CSI Driver Communication" and "Recommended Mechanism for Deploying CSI Drivers").
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
	// silence is how long kubelet may take to ask who we are. It looks every second, but not at a path on which it failed
	// before: there it waits up to two minutes (its exponential back-off). Another path is as good as new.
	silence     = 5 * time.Second
	longSilence = time.Minute
	callTimeout = 10 * time.Second
	interval    = 10 * time.Second
)

// Driver is the connection to a CSI driver, made again on its own when the driver restarts.
type Driver interface {
	Identity() csi.IdentityClient
	Node() csi.NodeClient
}

// Registrar is the part that keeps one driver registered with the kubelet of this machine, through restarts of the driver
// and of kubelet. When it is stopped the driver is unregistered: kubelet then removes it from the CSINode.
type Registrar struct {
	// Driver is the driver to register.
	Driver Driver
	// Endpoint is the driver's socket as kubelet sees it, an absolute path.
	Endpoint string
	// Dir is kubelet's directory plugins_registry as this process sees it.
	Dir string
	// Interval is how often the driver is asked whether it still is what it was; 10 s when zero.
	Interval time.Duration

	mu    sync.Mutex
	state State
}

// State is what kubelet says of a driver.
type State struct {
	Driver     string // the name, empty until the driver has answered
	Registered bool
	Problem    string // why not: the driver's answer or kubelet's
}

// Name is the part's name.
func (r *Registrar) Name() string { return "csi-registrar " + r.Endpoint }

// State is what is known now.
func (r *Registrar) State() State {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state
}

// Run registers the driver as soon as it answers. It is ready at once, since neither driver nor kubelet may have started.
// It ends with an error only when the directory cannot be made.
func (r *Registrar) Run(ctx context.Context, ready func()) error {
	if err := os.MkdirAll(r.Dir, 0o750); err != nil {
		return fmt.Errorf("make directory of registrations: %w", err)
	}
	ready()
	retry := newRetry()
	for attempt := 1; ctx.Err() == nil; {
		accepted, err := r.register(ctx, attempt)
		attempt++
		if accepted { // kubelet has no grudge against a path that it has accepted
			attempt, retry = 1, newRetry()
		}
		if err == nil || ctx.Err() != nil {
			continue // something has changed
		}
		r.problem(err)
		slog.Warn("CSI driver is not registered", "endpoint", r.Endpoint, "cause", err)
		select {
		case <-ctx.Done():
		case <-time.After(retry.Step()):
		}
	}
	return nil
}

func newRetry() wait.Backoff {
	return wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.1, Steps: 5, Cap: 30 * time.Second}
}

// register asks the driver who it is and announces it to kubelet.
func (r *Registrar) register(ctx context.Context, attempt int) (accepted bool, err error) {
	who, err := r.ask(ctx)
	if err != nil {
		return false, err
	}
	return r.announce(ctx, who, attempt)
}

func (r *Registrar) problem(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state.Registered, r.state.Problem = false, err.Error()
}

func (r *Registrar) set(s State) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state = s
}

// identity is what a driver says of itself. When it changes the driver has to be registered anew.
type identity struct {
	name string
	node *csi.NodeGetInfoResponse // nil when the driver does not say; kubelet then reports that
}

func (i identity) equal(other identity) bool {
	return i.name == other.name && proto.Equal(i.node, other.node)
}

// ask asks the driver who it is. A driver whose name cannot be used is not called again before the next attempt.
func (r *Registrar) ask(ctx context.Context) (identity, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	info, err := r.Driver.Identity().GetPluginInfo(ctx, &csi.GetPluginInfoRequest{})
	if err != nil {
		return identity{}, fmt.Errorf("ask driver at %q for its name: %w", r.Endpoint, err)
	}
	if err := driver.CheckName(info.GetName()); err != nil {
		return identity{}, err
	}
	node, err := r.Driver.Node().NodeGetInfo(ctx, &csi.NodeGetInfoRequest{})
	if err != nil {
		node = nil
	}
	return identity{name: info.GetName(), node: node}, nil
}

// announce offers the driver to kubelet until something changes, which is no error, or until kubelet refuses it. It tells
// whether kubelet accepted the driver at any time.
func (r *Registrar) announce(ctx context.Context, who identity, attempt int) (accepted bool, err error) {
	if err := removeStale(r.Dir, who.name); err != nil {
		return false, err
	}
	offer := newOffer(filepath.Join(r.Dir, socketName(who.name, attempt)), who.name, r.Endpoint)
	if err := offer.open(); err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, offer.close()) }()
	r.set(State{Driver: who.name, Problem: "kubelet has not asked for it"})
	patience := silence
	if attempt > 1 {
		patience = min(silence<<min(attempt, 10), longSilence)
	}
	return r.hold(ctx, who, offer, patience)
}

// hold waits while an offer is as it should be.
func (r *Registrar) hold(ctx context.Context, who identity, o *offer, patience time.Duration) (accepted bool, err error) {
	quiet := time.NewTimer(patience)
	defer quiet.Stop()
	look := time.NewTicker(orDefault(r.Interval, interval))
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return accepted, nil
		case <-o.asked:
			quiet.Stop()
		case <-quiet.C:
			return accepted, errors.New("kubelet does not ask for the driver")
		case status := <-o.status:
			if !status.GetPluginRegistered() {
				return accepted, fmt.Errorf("kubelet refuses CSI driver %q: %s", who.name, status.GetError())
			}
			accepted = true
			r.set(State{Driver: who.name, Registered: true})
			slog.Info("CSI driver is registered", "driver", who.name, "endpoint", r.Endpoint)
		case <-look.C:
			if r.changed(ctx, who) || !o.there() {
				return accepted, nil
			}
		}
	}
}

// changed tells whether the driver answers and is not what it was. One that does not answer may be restarting: its volumes
// are in use, and kubelet calls it at the same socket afterwards.
func (r *Registrar) changed(ctx context.Context, before identity) bool {
	now, err := r.ask(ctx)
	return err == nil && now.node != nil && !now.equal(before)
}

// removeStale removes sockets of earlier registrars of the driver, which nobody serves.
func removeStale(dir, driver string) error {
	for _, pattern := range []string{"", "."} {
		found, err := filepath.Glob(filepath.Join(dir, pattern+driver+"-reg*.sock"))
		if err != nil {
			return fmt.Errorf("look for sockets of earlier registrations: %w", err)
		}
		for _, path := range found {
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
