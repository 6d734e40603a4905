// Package capacity tells the scheduler how much room a CSI driver has, in CSIStorageCapacity objects: one for each StorageClass with delayed binding and each
// segment of the topology. Their names follow from both, so that there can never be two of one.
package capacity

import (
	"context"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	corelisters "k8s.io/client-go/listers/core/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/slipway-platform/slipway/controller"
	"github.com/slipway-platform/slipway/storage/csi/driver"
	"github.com/slipway-platform/slipway/storage/csi/session"
	"github.com/slipway-platform/slipway/storage/csi/topology"
)

// Options are what an administrator may choose.
type Options struct {
	// Namespace is where the objects are; capacity is not tracked without one.
	Namespace string
	// Interval is how often the driver is asked; 0 means a minute. It is asked within Settle, 0 means 5 seconds, when volumes come and go.
	Interval, Settle time.Duration
}

// Labels of the objects; the scheduler does not need them, administrators do.
const (
	driverLabel  = "csi.storage.k8s.io/drivername"
	managerLabel = "csi.storage.k8s.io/managed-by"
	manager      = "slipway"
)

// tracker publishes the capacity of one driver.
type tracker struct {
	*session.Session
	Options
	name    string
	classes storagelisters.StorageClassLister
	nodes   corelisters.NodeLister
	drivers storagelisters.CSIDriverLister
	objects storagelisters.CSIStorageCapacityNamespaceLister
	asked   map[string]time.Time // by StorageClass; one worker
}

// Feature makes the loop of a driver that can tell its capacity and has a topology.
func Feature(options Options) session.Feature {
	return func(s *session.Session) ([]controller.Loop, error) {
		if options.Namespace == "" || !s.Description.Can(csi.ControllerServiceCapability_RPC_GET_CAPACITY) {
			return nil, nil
		}
		if options.Interval == 0 {
			options.Interval = time.Minute
		}
		if options.Settle == 0 {
			options.Settle = 5 * time.Second
		}
		core, storage := s.Informers.Core().V1(), s.Informers.Storage().V1()
		t := &tracker{
			Session: s, Options: options, name: s.Description.Name,
			classes: storage.StorageClasses().Lister(), nodes: core.Nodes().Lister(),
			drivers: storage.CSIDrivers().Lister(), objects: storage.CSIStorageCapacities().Lister().CSIStorageCapacities(options.Namespace),
			asked: map[string]time.Time{},
		}
		return []controller.Loop{{
			Name: "capacity", Workers: 1, Reconcile: t.reconcile,
			Watches: []controller.Watch{
				{Informer: storage.StorageClasses().Informer(), Keys: t.classKeys},
				{Informer: storage.CSINodes().Informer(), Keys: t.allKeys},
				{Informer: core.PersistentVolumes().Informer(), Keys: t.volumeKeys, Changed: session.Unchanged},
			},
			Reads: []cache.SharedIndexInformer{core.Nodes().Informer(), storage.CSIDrivers().Informer(), storage.CSIStorageCapacities().Informer()},
		}}, nil
	}
}

func (t *tracker) classKeys(object any) []controller.Key {
	class, ok := object.(*storagev1.StorageClass)
	if !ok || class.Provisioner != t.name {
		return nil
	}
	return []controller.Key{{Name: class.Name}}
}

// allKeys are all classes of the driver: its nodes have changed.
func (t *tracker) allKeys(any) (keys []controller.Key) {
	classes, _ := t.classes.List(labels.Everything()) // a cache does not fail
	for _, class := range classes {
		keys = append(keys, t.classKeys(class)...)
	}
	return keys
}

func (t *tracker) volumeKeys(object any) []controller.Key {
	pv, ok := object.(*corev1.PersistentVolume)
	if !ok || pv.Spec.CSI == nil || pv.Spec.CSI.Driver != t.name || pv.Spec.StorageClassName == "" {
		return nil
	}
	return []controller.Key{{Name: pv.Spec.StorageClassName}}
}

// reconcile publishes the capacity of one StorageClass everywhere, and removes what is published for places and classes that are gone.
func (t *tracker) reconcile(ctx context.Context, key controller.Key) error {
	class, err := t.classes.Get(key.Name)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("read StorageClass %q: %w", key.Name, err)
	}
	if err != nil || class.Provisioner != t.name || !delayed(class) {
		return t.prune(ctx, key.Name, nil)
	}
	if left := t.Settle - time.Since(t.asked[class.Name]); left > 0 {
		return controller.After(left)
	}
	t.asked[class.Name] = time.Now()
	segments, err := t.segments()
	if err != nil {
		return err
	}
	current := map[string]bool{}
	for _, segment := range segments {
		name := t.objectName(class.Name, segment)
		current[name] = true
		if err := t.publish(ctx, class, segment, name); err != nil {
			return err
		}
	}
	if err := t.prune(ctx, class.Name, current); err != nil {
		return err
	}
	return controller.After(t.Interval)
}

func delayed(class *storagev1.StorageClass) bool {
	return class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer
}

// segments are the places of the nodes that have the driver, or of the one node that it serves.
func (t *tracker) segments() ([]topology.Segment, error) {
	nodes, err := t.Nodes()
	if err != nil || t.Node == "" {
		return topology.Segments(nodes), err
	}
	for _, node := range nodes {
		if node.Name == t.Node {
			return topology.Segments([]topology.Node{node}), nil
		}
	}
	return nil, nil
}

func (t *tracker) objectName(class string, segment topology.Segment) string {
	h := fnv.New64a()
	fmt.Fprintf(h, "%q %q %s", t.name, class, segment)
	return fmt.Sprintf("%s-%016x", driver.Sanitized(t.name), h.Sum64())
}

// prune removes the objects of a class that are not current. One that serves a node leaves the objects of other nodes alone.
func (t *tracker) prune(ctx context.Context, class string, current map[string]bool) error {
	own := labels.SelectorFromSet(labels.Set{driverLabel: t.name, managerLabel: t.manager()})
	objects, err := t.objects.List(own)
	if err != nil {
		return fmt.Errorf("list CSIStorageCapacities: %w", err)
	}
	for _, object := range objects {
		if object.StorageClassName != class || current[object.Name] {
			continue
		}
		err := t.Client.StorageV1().CSIStorageCapacities(t.Namespace).Delete(ctx, object.Name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete CSIStorageCapacity %q: %w", object.Name, err)
		}
	}
	return nil
}

// manager is who looks after the objects: one for all nodes, or each node for its own.
func (t *tracker) manager() string {
	if t.Node == "" {
		return manager
	}
	h := fnv.New64a()
	fmt.Fprint(h, t.Node)
	return fmt.Sprintf("%s-%016x", manager, h.Sum64())
}
