// Package csi implements the controller side of CSI drivers: provisioning, attaching and the other
// tasks of the community's sidecar containers. One process serves any number of drivers with shared
// caches (document "CSI Volume Plugins in Kubernetes").
package csi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	snapshotclient "github.com/kubernetes-csi/external-snapshotter/client/v8/clientset/versioned"
	snapshotinformers "github.com/kubernetes-csi/external-snapshotter/client/v8/informers/externalversions"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"

	"github.com/slipway-platform/slipway/controller"
	"github.com/slipway-platform/slipway/storage/csi/driver"
	"github.com/slipway-platform/slipway/storage/csi/metrics"
	"github.com/slipway-platform/slipway/storage/csi/register"
	"github.com/slipway-platform/slipway/storage/csi/session"
)

// Controller is the component that runs the controllers for CSI drivers.
type Controller struct {
	// Config is the client configuration for the API server.
	Config *rest.Config
	// Drivers lists the addresses of the drivers' sockets, such as unix:///run/csi/csi.sock. The
	// sockets do not need to exist yet.
	Drivers []string
	// Timeout is the timeout of each driver call. The default is 30 seconds.
	Timeout time.Duration
	// Node, if set, is the only node that the drivers serve. Such drivers must run on every node,
	// each with its own controller. The controller provisions and deletes volumes only for this
	// node, and does not attach volumes.
	Node string
	// Lease, if set, is the Lease for leader election.
	Lease *Lease
	// Features create the controllers. The Features function returns all available features.
	Features []session.Feature
	// Object, if set, enables management of each driver's CSIDriver object. It contains the fields
	// that are not derived from the driver's capabilities. CSIDriver objects that Slipway did not
	// create are not changed.
	Object *storagev1.CSIDriverSpec
	// Metrics records the metrics of drivers and queues.
	Metrics *metrics.Metrics
	// Dial contains additional options for driver connections, such as fault injection in tests.
	Dial driver.Options
}

// Lease identifies the Lease for leader election.
type Lease struct {
	// Namespace and Name identify the Lease. Identity is the name of this instance.
	Namespace, Name, Identity string
}

// Name returns the component's name.
func (c *Controller) Name() string { return "csi" }

// Run serves the drivers until ctx is done. It is ready immediately, before the drivers respond and
// before this instance becomes the leader.
func (c *Controller) Run(ctx context.Context, ready func()) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	drivers, err := c.dial()
	defer func() {
		for _, d := range drivers {
			_ = d.Close()
		}
	}()
	if err != nil {
		return err
	}
	serve := func(ctx context.Context) error { return c.serve(ctx, client, drivers) }
	if c.Lease == nil {
		ready()
		return serve(ctx)
	}
	election := &controller.Election{Client: client, Namespace: c.Lease.Namespace, Lease: c.Lease.Name, Identity: c.Lease.Identity, Lead: serve}
	return election.Run(ctx, ready)
}

// client returns a client that uses protobuf and has no client-side rate limit. API Priority and
// Fairness limits its requests on the server.
func (c *Controller) client() (kubernetes.Interface, error) {
	config := rest.CopyConfig(c.Config)
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON
	if config.QPS == 0 {
		config.QPS = -1
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create CSI controller client: %w", err)
	}
	return client, nil
}

func (c *Controller) dial() (drivers []*driver.Driver, err error) {
	if len(c.Drivers) == 0 {
		return nil, errors.New("serve CSI drivers: no driver address is configured")
	}
	options := c.Dial
	options.Timeout = c.Timeout
	if c.Metrics != nil {
		options.Observe = c.Metrics.Observe
	}
	for _, address := range c.Drivers {
		d, err := driver.Dial(address, options)
		if err != nil {
			return drivers, err
		}
		drivers = append(drivers, d)
	}
	return drivers, nil
}

// serve serves all drivers during one term of leadership.
func (c *Controller) serve(ctx context.Context, client kubernetes.Interface, drivers []*driver.Driver) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	shared := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(trim))
	defer shared.Shutdown()
	defer cancel() // cancel before Shutdown, which waits for the informers
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(&coreclient.EventSinkImpl{Interface: client.CoreV1().Events("")})

	term := &term{Controller: c, client: client, informers: shared, events: broadcaster, registrations: map[string]*registration{}}
	if err := term.snapshots(); err != nil {
		return err
	}
	if term.snapshotInformers != nil {
		defer term.snapshotInformers.Shutdown()
		defer cancel()
	}
	errs := make([]error, len(drivers))
	var group sync.WaitGroup
	for i, d := range drivers {
		group.Go(func() {
			errs[i] = term.serve(ctx, d)
			if errs[i] != nil {
				cancel()
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

// trim removes the fields that no controller reads from cached objects. These fields would use most
// of the memory.
func trim(object any) (any, error) {
	if accessor, err := meta.Accessor(object); err == nil {
		accessor.SetManagedFields(nil)
	}
	if node, ok := object.(*corev1.Node); ok {
		node.Status = corev1.NodeStatus{}
	}
	return object, nil
}

// term holds the objects that all drivers share during one term of leadership.
type term struct {
	*Controller
	client    kubernetes.Interface
	informers informers.SharedInformerFactory
	events    record.EventBroadcaster

	snapshotClient    snapshotclient.Interface // nil if the API server does not serve snapshots
	snapshotInformers snapshotinformers.SharedInformerFactory

	mu            sync.Mutex
	registrations map[string]*registration // by driver name
}

// registration records which driver is served under a name.
type registration struct {
	address string
	// active is done when the name is released.
	active  context.Context
	release context.CancelFunc
}

// serve serves one driver. It waits for the driver, and starts a new session when the driver's
// description changes. If a driver's name is in use, serve waits until the name is released.
func (t *term) serve(ctx context.Context, d *driver.Driver) error {
	name := "" // the driver's latest name, which stays registered between sessions
	defer func() { t.release(name, d.Address) }()
	for ctx.Err() == nil {
		description, err := d.WaitReady(ctx)
		if err != nil {
			return nil
		}
		if name != description.Name {
			t.release(name, d.Address)
			name = description.Name
		}
		if other := t.register(ctx, name, d.Address); other != nil {
			slog.Error("CSI driver is not served: another address has a driver with the same name", "driver", name, "endpoint", d.Address, "other", other.address)
			waitCtx, cancel := context.WithCancel(ctx)
			stop := context.AfterFunc(other.active, cancel)
			d.WaitChanged(waitCtx, description)
			stop()
			cancel()
			continue
		}
		slog.Info("CSI driver is served", "driver", name, "version", description.Version, "endpoint", d.Address)
		if err := t.session(ctx, d, description); err != nil {
			return fmt.Errorf("serve CSI driver %q: %w", name, err)
		}
	}
	return nil
}

// register registers a driver's address under a name. If the name is in use by another address, it
// returns the existing registration.
func (t *term) register(ctx context.Context, name, address string) (other *registration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if existing := t.registrations[name]; existing != nil {
		if existing.address == address {
			return nil
		}
		return existing
	}
	active, release := context.WithCancel(ctx)
	t.registrations[name] = &registration{address: address, active: active, release: release}
	return nil
}

// release releases a name if it is registered for the address.
func (t *term) release(name, address string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if existing := t.registrations[name]; existing != nil && existing.address == address {
		existing.release()
		delete(t.registrations, name)
	}
}

// session runs a driver's controllers until the driver's description changes.
func (t *term) session(ctx context.Context, d *driver.Driver, description *driver.Description) error {
	s := &session.Session{
		Client: t.client, Config: t.Config, Informers: t.informers, Snapshots: t.snapshotClient, SnapshotInformers: t.snapshotInformers, Driver: d, Description: description, Node: t.Node,
		Events: t.events.NewRecorder(scheme.Scheme, corev1.EventSource{Component: description.Name}),
	}
	if t.Lease != nil {
		leader := &controller.LeaseHolder{Client: t.client, Namespace: t.Lease.Namespace, Lease: t.Lease.Name, Identity: t.Lease.Identity}
		s.Confirm = leader.Confirm
	}
	if t.Metrics != nil {
		s.Queues = t.Metrics.Queues(description.Name)
	}
	var loops controller.Manager
	for _, feature := range t.Features {
		featureLoops, err := feature(s)
		if err != nil {
			return err
		}
		loops = append(loops, featureLoops...)
	}
	for i := range loops {
		loops[i].Metrics = s.Queues
	}
	t.informers.StartWithContext(ctx)
	if t.snapshotInformers != nil {
		t.snapshotInformers.Start(ctx.Done())
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var group sync.WaitGroup
	group.Go(func() {
		d.WaitChanged(ctx, description)
		cancel()
	})
	if t.Object != nil {
		object := &register.Object{
			Drivers: t.client.StorageV1().CSIDrivers(), Driver: description.Name, Spec: register.Spec(description, *t.Object),
		}
		group.Go(func() { _ = object.Run(ctx, func() {}) }) // Run always returns nil
	}
	defer group.Wait()
	defer cancel()
	if len(loops) == 0 {
		slog.Warn("CSI driver supports none of the controller's features", "driver", description.Name)
		<-ctx.Done()
		return nil
	}
	return loops.Run(ctx, func() {})
}
