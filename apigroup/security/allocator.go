package security

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/big"

	securityv1 "github.com/openshift/api/security/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"k8s.io/apimachinery/pkg/runtime"
)

// Allocator gives every namespace its ranges: a block of user IDs, which are group IDs too, and an SELinux level. What is taken
// is found from the annotations of the namespaces at each start, so that nothing can be lost or taken twice.
type Allocator struct {
	// Client is a connection that may list, watch and patch namespaces.
	Client *rest.Config
	// UIDRange is `<first>-<last>/<size of a block>`, 1000000000-1999999999/10000 in OpenShift.
	UIDRange string
	// MCSRange is `<prefix>/<categories>[,<number of categories>]`, s0:/2 in OpenShift.
	MCSRange string
	// LabelsPerProject is how many labels lie between two namespaces, 5 in OpenShift.
	LabelsPerProject int

	ids    idRange
	levels labels
	taken  *big.Int
	owners map[string]int
	client kubernetes.Interface
}

// Name is the part's name.
func (a *Allocator) Name() string { return "allocator" }

// Run allocates until ctx ends; ready is called when all namespaces that existed at the start have their ranges.
func (a *Allocator) Run(ctx context.Context, ready func()) error {
	if err := a.prepare(); err != nil {
		return err
	}
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
	store, informer := a.informer(queue)
	done := make(chan struct{})
	go func() { defer close(done); informer.RunWithContext(ctx) }()
	defer func() { <-done }()
	context.AfterFunc(ctx, queue.ShutDown)
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return nil
	}
	for _, object := range store.List() {
		a.remember(object.(*corev1.Namespace))
	}
	for waiting := queue.Len(); ; waiting-- {
		if waiting == 0 {
			ready()
		}
		name, stopped := queue.Get()
		if stopped {
			return nil
		}
		if err := a.reconcile(ctx, store, name); err != nil {
			slog.Warn("allocate ranges", "namespace", name, "error", err)
			queue.AddRateLimited(name)
		} else {
			queue.Forget(name)
		}
		queue.Done(name)
	}
}

func (a *Allocator) prepare() (err error) {
	var errs [3]error
	a.ids, errs[0] = parseRange(a.UIDRange)
	a.levels, errs[1] = parseLabels(a.MCSRange)
	connection := rest.CopyConfig(a.Client)
	connection.QPS = -1 // one request at a time is the limit: pods of a new project wait for its ranges
	a.client, errs[2] = kubernetes.NewForConfig(connection)
	if err := errors.Join(errs[:]...); err != nil {
		return fmt.Errorf("prepare allocation of ranges: %w", err)
	}
	a.taken, a.owners = new(big.Int), map[string]int{}
	return nil
}

func (a *Allocator) informer(queue workqueue.TypedRateLimitingInterface[string]) (cache.Store, cache.Controller) {
	add := func(object any) {
		if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object); err == nil {
			queue.Add(key)
		}
	}
	namespaces := a.client.CoreV1().Namespaces()
	return cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
				return namespaces.List(ctx, options)
			},
			WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
				return namespaces.Watch(ctx, options)
			},
		},
		ObjectType: &corev1.Namespace{},
		Handler:    cache.ResourceEventHandlerFuncs{AddFunc: add, UpdateFunc: func(_, object any) { add(object) }, DeleteFunc: add},
	})
}

// remember takes the block that a namespace has already.
func (a *Allocator) remember(ns *corev1.Namespace) {
	if index, ok := a.ids.index(ns.Annotations[securityv1.UIDRangeAnnotation]); ok {
		a.taken.SetBit(a.taken, index, 1)
		a.owners[ns.Name] = index
	}
}

// reconcile gives a namespace what it lacks, and takes back the block of one that is gone.
func (a *Allocator) reconcile(ctx context.Context, store cache.Store, name string) error {
	object, exists, err := store.GetByKey(name)
	if err != nil {
		return err
	}
	if !exists {
		if index, ok := a.owners[name]; ok {
			a.taken.SetBit(a.taken, index, 0)
			delete(a.owners, name)
		}
		return nil
	}
	ns := object.(*corev1.Namespace)
	a.remember(ns)
	missing, err := a.missing(ns)
	if err != nil || len(missing) == 0 {
		return err
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": ns.UID, "annotations": missing}})
	if err != nil {
		return err
	}
	_, err = a.client.CoreV1().Namespaces().Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "slipway-allocator"})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // gone or another one of the name: the next event says
	}
	return err
}

// missing are the annotations that a namespace still needs.
func (a *Allocator) missing(ns *corev1.Namespace) (map[string]string, error) {
	missing := map[string]string{}
	users, hasUsers := ns.Annotations[securityv1.UIDRangeAnnotation]
	if !hasUsers {
		index, ok := a.owners[ns.Name]
		if !ok {
			if index, ok = a.free(); !ok {
				return nil, fmt.Errorf("all %d blocks of the range %s are taken; extend projectConfig.securityAllocator.uidAllocatorRange", a.ids.count(), a.ids)
			}
			a.taken.SetBit(a.taken, index, 1)
			a.owners[ns.Name] = index
		}
		users = a.ids.annotation(index)
		missing[securityv1.UIDRangeAnnotation] = users
	}
	if _, ok := ns.Annotations[securityv1.SupplementalGroupsAnnotation]; !ok {
		missing[securityv1.SupplementalGroupsAnnotation] = users
	}
	if _, ok := ns.Annotations[securityv1.MCSAnnotation]; !ok {
		missing[securityv1.MCSAnnotation] = a.level(a.owners[ns.Name])
	}
	return missing, nil
}

// free is the first block that nobody has.
func (a *Allocator) free() (int, bool) {
	for index := range a.ids.count() {
		if a.taken.Bit(index) == 0 {
			return index, true
		}
	}
	return 0, false
}

// level is the SELinux level of the namespace with the block at index. Where there are fewer labels than blocks they
// begin again.
func (a *Allocator) level(index int) string {
	number := new(big.Int).Mul(big.NewInt(int64(index)), big.NewInt(int64(a.LabelsPerProject)))
	return a.levels.at(int(number.Mod(number, a.levels.count()).Int64()))
}
