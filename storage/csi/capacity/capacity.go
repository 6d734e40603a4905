// Package capacity publishes a CSI driver's free capacity to the scheduler in CSIStorageCapacity
// objects, one for each combination of a topology segment and a StorageClass with delayed binding.
// Object names are derived from the StorageClass and the segment, which prevents duplicates.
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

// Options configures capacity tracking.
type Options struct {
	// Namespace is the namespace of the objects. If it is empty, capacity is not tracked.
	Namespace string
	// Interval is the interval at which the capacity is queried. The default is 1 minute. A change
	// to volumes, nodes or a StorageClass causes an additional query. Debounce is the minimum time
	// between two queries for a StorageClass. The default is 5 seconds.
	Interval, Debounce time.Duration
}

// Labels on the objects, for administrators. The scheduler does not use them.
const (
	driverLabel  = "csi.storage.k8s.io/drivername"
	managerLabel = "csi.storage.k8s.io/managed-by"
	manager      = "slipway"
)

// tracker publishes one driver's capacity.
type tracker struct {
	*session.Session
	Options
	name      string
	classes   storagelisters.StorageClassLister
	nodes     corelisters.NodeLister
	drivers   storagelisters.CSIDriverLister
	objects   storagelisters.CSIStorageCapacityNamespaceLister
	lastQuery map[string]time.Time // by StorageClass; needs no mutex, because only one worker runs
}

// Feature returns the controller for a driver that supports GET_CAPACITY.
func Feature(options Options) session.Feature {
	return func(s *session.Session) ([]controller.Controller, error) {
		if options.Namespace == "" || !s.Description.Can(csi.ControllerServiceCapability_RPC_GET_CAPACITY) {
			return nil, nil
		}
		if options.Interval == 0 {
			options.Interval = time.Minute
		}
		if options.Debounce == 0 {
			options.Debounce = 5 * time.Second
		}
		core, storage := s.Informers.Core().V1(), s.Informers.Storage().V1()
		t := &tracker{
			Session: s, Options: options, name: s.Description.Name,
			classes: storage.StorageClasses().Lister(), nodes: core.Nodes().Lister(),
			drivers: storage.CSIDrivers().Lister(), objects: storage.CSIStorageCapacities().Lister().CSIStorageCapacities(options.Namespace),
			lastQuery: map[string]time.Time{},
		}
		return []controller.Controller{{
			Name: "capacity", Workers: 1, Reconcile: t.reconcile,
			Watches: []controller.Watch{
				{Informer: storage.StorageClasses().Informer(), Keys: t.classKeys},
				{Informer: storage.CSINodes().Informer(), Keys: t.allKeys},
				{Informer: core.PersistentVolumes().Informer(), Keys: t.volumeKeys, Changed: session.IgnoreUpdates},
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

// allKeys returns the keys of all StorageClasses that use the driver, because a change to the
// driver's nodes can affect the capacity of each of them.
func (t *tracker) allKeys(any) (keys []controller.Key) {
	classes, _ := t.classes.List(labels.Everything()) // reads from a cache do not fail
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

// reconcile publishes the capacity for one StorageClass in all segments. It deletes the objects for
// segments and classes that no longer exist.
func (t *tracker) reconcile(ctx context.Context, key controller.Key) error {
	class, err := t.classes.Get(key.Name)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("read StorageClass %q: %w", key.Name, err)
	}
	if err != nil || class.Provisioner != t.name || !hasDelayedBinding(class) {
		return t.prune(ctx, key.Name, nil)
	}
	if remaining := t.Debounce - time.Since(t.lastQuery[class.Name]); remaining > 0 {
		return controller.RequeueAfter(remaining)
	}
	t.lastQuery[class.Name] = time.Now()
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
	return controller.RequeueAfter(t.Interval)
}

func hasDelayedBinding(class *storagev1.StorageClass) bool {
	return class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer
}

// segments returns the topology segments of the nodes that run the driver. If the driver serves a
// single node, it returns only the segment of the tracker's node.
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
	return fmt.Sprintf("%s-%016x", driver.SanitizeName(t.name), h.Sum64())
}

// prune deletes a class's objects whose names are not in current. For a driver that serves a single
// node, it ignores objects for other nodes.
func (t *tracker) prune(ctx context.Context, class string, current map[string]bool) error {
	selector := labels.SelectorFromSet(labels.Set{driverLabel: t.name, managerLabel: t.manager()})
	objects, err := t.objects.List(selector)
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

// manager returns the value of the objects' manager label: one value for all nodes, or one value
// per node.
func (t *tracker) manager() string {
	if t.Node == "" {
		return manager
	}
	h := fnv.New64a()
	fmt.Fprint(h, t.Node)
	return fmt.Sprintf("%s-%016x", manager, h.Sum64())
}
