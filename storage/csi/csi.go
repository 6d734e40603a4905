// Package csi does for CSI drivers what Kubernetes leaves to components outside of it: provisioning, attaching and what else the separate sidecar
// containers do, for any number of drivers in one process with shared caches (document "CSI Volume Plugins in Kubernetes").
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
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"

	"github.com/slipway-platform/slipway/controller"
	"github.com/slipway-platform/slipway/storage/csi/driver"
	"github.com/slipway-platform/slipway/storage/csi/metrics"
	"github.com/slipway-platform/slipway/storage/csi/register"
	"github.com/slipway-platform/slipway/storage/csi/session"
)

// Controller is the controller side of CSI drivers as a part of a process.
type Controller struct {
	// Config is the connection to the API server and the identity of the controller.
	Config *rest.Config
	// Drivers are the addresses of the drivers' sockets, such as unix:///run/csi/csi.sock. None needs to be there yet.
	Drivers []string
	// Timeout is the deadline of each call of a driver; 0 means 30 seconds.
	Timeout time.Duration
	// Node, if set, is the node that the drivers serve, which then must run on every node: volumes are provisioned and deleted for this node alone, and
	// nothing is attached.
	Node string
	// Lease, if set, is the Lease by which one of several instances is elected.
	Lease *Lease
	// Features make the loops; Features gives all of them.
	Features []session.Feature
	// Object, if set, keeps the CSIDriver object of each driver: it is what the object says beyond what follows from the driver's capabilities. An
	// object that somebody else made is left as it is.
	Object *storagev1.CSIDriverSpec
	// Metrics measure drivers and queues.
	Metrics *metrics.Metrics
	// Dial are further options of connections to drivers; tests inject faults with them.
	Dial driver.Options
}

// Lease is what instances elect a leader by.
type Lease struct {
	// Namespace and Name are where the Lease is and what it is called; Identity is this instance.
	Namespace, Name, Identity string
}

// Name is the part's name.
func (c *Controller) Name() string { return "csi" }

// Run serves the drivers until ctx ends. It is ready at once: drivers are waited for, and so is leadership.
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

// client speaks protobuf and leaves it to the API server's priorities to slow requests down.
func (c *Controller) client() (kubernetes.Interface, error) {
	config := rest.CopyConfig(c.Config)
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON
	if config.QPS == 0 {
		config.QPS = -1
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect CSI controller: %w", err)
	}
	return client, nil
}

func (c *Controller) dial() (drivers []*driver.Driver, err error) {
	if len(c.Drivers) == 0 {
		return nil, errors.New("serve CSI drivers: no address of a driver is given")
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

// serve serves all drivers, each by itself, for one term of leadership.
func (c *Controller) serve(ctx context.Context, client kubernetes.Interface, drivers []*driver.Driver) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	shared := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(trim))
	defer shared.Shutdown()
	defer cancel() // before Shutdown, which waits for the informers
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")})

	term := &term{Controller: c, client: client, informers: shared, events: broadcaster, served: map[string]string{}}
	if err := term.snapshots(); err != nil {
		return err
	}
	if term.snapshotInformers != nil {
		defer term.snapshotInformers.Shutdown()
		defer cancel()
	}
	problems := make([]error, len(drivers))
	var ended sync.WaitGroup
	for i, d := range drivers {
		ended.Go(func() {
			problems[i] = term.serve(ctx, d)
			if problems[i] != nil {
				cancel()
			}
		})
	}
	ended.Wait()
	return errors.Join(problems...)
}

// trim leaves out of the caches what no loop reads: it is most of their memory.
func trim(object any) (any, error) {
	if accessor, err := meta.Accessor(object); err == nil {
		accessor.SetManagedFields(nil)
	}
	if node, ok := object.(*corev1.Node); ok {
		node.Status = corev1.NodeStatus{}
	}
	return object, nil
}

// term is what all drivers share while this instance leads.
type term struct {
	*Controller
	client    kubernetes.Interface
	informers informers.SharedInformerFactory
	events    record.EventBroadcaster

	snapshotClient    snapshotclient.Interface // nil without the API of snapshots
	snapshotInformers snapshotinformers.SharedInformerFactory

	mu     sync.Mutex
	served map[string]string // addresses by name of driver
}

// serve serves one driver, session after session: it is waited for, and a restart in another shape starts anew.
func (t *term) serve(ctx context.Context, d *driver.Driver) error {
	for ctx.Err() == nil {
		description, err := d.Await(ctx)
		if err != nil {
			return nil
		}
		if other := t.claim(description.Name, d.Address); other != "" {
			slog.Error("CSI driver is not served: another address has a driver of the same name", "driver", description.Name, "address", d.Address, "other", other)
			d.Changed(ctx, description)
			continue
		}
		slog.Info("CSI driver is served", "driver", description.Name, "version", description.Version, "address", d.Address)
		if err := t.session(ctx, d, description); err != nil {
			return fmt.Errorf("serve CSI driver %q: %w", description.Name, err)
		}
		t.release(description.Name)
	}
	return nil
}

// claim notes that the driver of an address is served; if another address has a driver of that name already, it returns that.
func (t *term) claim(name, address string) (other string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if taken, ok := t.served[name]; ok {
		return taken
	}
	t.served[name] = address
	return ""
}

func (t *term) release(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.served, name)
}

// session runs the loops of a driver until it describes itself in another way.
func (t *term) session(ctx context.Context, d *driver.Driver, description *driver.Description) error {
	s := &session.Session{
		Client: t.client, Config: t.Config, Informers: t.informers, Snapshots: t.snapshotClient, SnapshotInformers: t.snapshotInformers, Driver: d, Description: description, Node: t.Node,
		Events: t.events.NewRecorder(scheme.Scheme, corev1.EventSource{Component: description.Name}),
	}
	if t.Metrics != nil {
		s.Queues = t.Metrics.Queues(description.Name)
	}
	var loops controller.Set
	for _, feature := range t.Features {
		made, err := feature(s)
		if err != nil {
			return err
		}
		loops = append(loops, made...)
	}
	for i := range loops {
		loops[i].Metrics = s.Queues
	}
	t.informers.StartWithContext(ctx)
	if t.snapshotInformers != nil {
		t.snapshotInformers.Start(ctx.Done())
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	var watching sync.WaitGroup
	watching.Go(func() {
		d.Changed(ctx, description)
		end()
	})
	if t.Object != nil {
		object := &register.Object{
			Drivers: t.client.StorageV1().CSIDrivers(), Driver: description.Name, Spec: register.Spec(description, *t.Object),
		}
		watching.Go(func() { _ = object.Run(ctx, func() {}) }) // which returns no error
	}
	defer watching.Wait()
	defer end()
	if len(loops) == 0 {
		slog.Warn("CSI driver offers nothing that the controller could do", "driver", description.Name)
		<-ctx.Done()
		return nil
	}
	return loops.Run(ctx, func() {})
}
