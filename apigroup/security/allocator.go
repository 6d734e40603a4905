package security

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"time"

	securityv1 "github.com/openshift/api/security/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	labelselector "k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/slipway-platform/slipway/controller"
)

// Allocator allocates ranges to every namespace: a block of user IDs, which are also used as group
// IDs, and an SELinux level. On startup, it reads the allocated blocks from the namespaces'
// annotations, so a restart does not lose a block or allocate it twice.
type Allocator struct {
	// Deps provides the shared clients and caches.
	Deps *controller.Deps
	// UIDRange has the format `<first>-<last>/<block size>`. The default in OpenShift is
	// 1000000000-1999999999/10000.
	UIDRange string
	// MCSRange has the format `<prefix>/<categories>[,<number of categories>]`. The default in
	// OpenShift is s0:/2.
	MCSRange string
	// LabelsPerProject is the distance between the labels of two namespaces. The default in
	// OpenShift is 5.
	LabelsPerProject int

	ids        idRange
	levels     labels
	allocated  *big.Int // bit set of allocated blocks
	owners     map[string]int
	client     kubernetes.Interface
	namespaces corelisters.NamespaceLister
}

// Name returns the component's name.
func (a *Allocator) Name() string { return "allocator" }

// Run allocates ranges until ctx is done. It calls ready when ranges have been allocated to all
// namespaces that existed at startup.
func (a *Allocator) Run(ctx context.Context, ready func()) error {
	if err := a.prepare(); err != nil {
		return err
	}
	namespaces := a.Deps.Informers.Core().V1().Namespaces()
	informer := namespaces.Informer()
	a.namespaces = namespaces.Lister()
	a.Deps.Start()
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return nil
	}
	if err := a.reconcileAll(ctx); err != nil {
		return err
	}
	manager := controller.Manager{{
		Name: "allocator", Watches: []controller.Watch{{Informer: informer}}, MinBackoff: minBackoff,
		Workers:   1, // the set of allocated blocks has no lock
		Reconcile: func(ctx context.Context, key controller.Key) error { return a.reconcile(ctx, key.Name) },
	}}
	return manager.Run(ctx, ready)
}

// minBackoff is short, because a new project's pods wait for the project's ranges.
const minBackoff = 5 * time.Millisecond

// reconcileAll first records the blocks of all namespaces, and then allocates the missing ranges.
// If the allocation fails for a namespace, the controller retries it.
func (a *Allocator) reconcileAll(ctx context.Context) error {
	namespaces, err := a.namespaces.List(labelselector.Everything())
	if err != nil {
		return err
	}
	for _, ns := range namespaces {
		a.record(ns)
	}
	for _, ns := range namespaces {
		if err := a.reconcile(ctx, ns.Name); err != nil && ctx.Err() == nil {
			slog.Warn("cannot allocate UID, group and SELinux ranges", "namespace", ns.Name, "error", err)
		}
	}
	return nil
}

func (a *Allocator) prepare() (err error) {
	var errs [2]error
	a.ids, errs[0] = parseRange(a.UIDRange)
	a.levels, errs[1] = parseLabels(a.MCSRange)
	if err := errors.Join(errs[:]...); err != nil {
		return fmt.Errorf("prepare range allocation: %w", err)
	}
	a.client = a.Deps.Kube
	a.allocated, a.owners = new(big.Int), map[string]int{}
	return nil
}

// record marks a namespace's block as allocated.
func (a *Allocator) record(ns *corev1.Namespace) {
	if index, ok := a.ids.index(ns.Annotations[securityv1.UIDRangeAnnotation]); ok {
		a.allocated.SetBit(a.allocated, index, 1)
		a.owners[ns.Name] = index
	}
}

// reconcile allocates a namespace's missing ranges, or frees the block of a deleted namespace.
func (a *Allocator) reconcile(ctx context.Context, name string) error {
	ns, err := a.namespaces.Get(name)
	if apierrors.IsNotFound(err) {
		if index, ok := a.owners[name]; ok {
			a.allocated.SetBit(a.allocated, index, 0)
			delete(a.owners, name)
		}
		return nil
	}
	if err != nil {
		return err
	}
	a.record(ns)
	missing, err := a.missing(ns)
	if err != nil || len(missing) == 0 {
		return err
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": ns.UID, "annotations": missing}})
	if err != nil {
		return err
	}
	_, err = a.client.CoreV1().Namespaces().Patch(ctx, name, types.MergePatchType, patch,
		metav1.PatchOptions{FieldManager: "slipway-allocator"})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // the namespace was deleted or recreated: another event follows
	}
	return err
}

// missing returns a namespace's missing annotations.
func (a *Allocator) missing(ns *corev1.Namespace) (map[string]string, error) {
	missing := map[string]string{}
	users, hasUsers := ns.Annotations[securityv1.UIDRangeAnnotation]
	if !hasUsers {
		index, ok := a.owners[ns.Name]
		if !ok {
			if index, ok = a.free(); !ok {
				return nil, fmt.Errorf("all %d blocks of the range %s are allocated; extend projectConfig.securityAllocator.uidAllocatorRange",
					a.ids.count(), a.ids)
			}
			a.allocated.SetBit(a.allocated, index, 1)
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

// free returns the index of the first free block.
func (a *Allocator) free() (int, bool) {
	for index := range a.ids.count() {
		if a.allocated.Bit(index) == 0 {
			return index, true
		}
	}
	return 0, false
}

// level returns the SELinux level of the namespace with the block at index. If there are fewer
// labels than blocks, several namespaces share a label.
func (a *Allocator) level(index int) string {
	number := new(big.Int).Mul(big.NewInt(int64(index)), big.NewInt(int64(a.LabelsPerProject)))
	return a.levels.at(int(number.Mod(number, a.levels.count()).Int64()))
}
