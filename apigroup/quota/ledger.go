package quota

import (
	"context"
	"fmt"
	"slices"
	"sync"

	quotav1 "github.com/openshift/api/quota/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/request"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	corelisters "k8s.io/client-go/listers/core/v1"
)

// ledger reads quotas and writes their usage directly in the stores, without requests to the API
// server.
type ledger struct {
	stores     map[schema.GroupResource]*registry.Store
	namespaces corelisters.NamespaceLister
}

func newLedger(stores map[schema.GroupResource]*registry.Store, namespaces corelisters.NamespaceLister) *ledger {
	return &ledger{stores, namespaces}
}

func resource() schema.GroupResource { return quotav1.Resource("clusterresourcequotas") }

// all returns the quotas in the API server's cache. Callers must not modify them.
func (l *ledger) all(ctx context.Context) ([]quotav1.ClusterResourceQuota, error) {
	store, ok := l.stores[resource()]
	if !ok { // the server is still starting
		return nil, nil
	}
	list, err := store.List(clusterWide(ctx), &internalversion.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil, fmt.Errorf("list cluster quotas: %w", err)
	}
	return list.(*quotav1.ClusterResourceQuotaList).Items, nil
}

// names returns the names of the quotas that select a namespace, sorted.
func (l *ledger) names(ctx context.Context, namespace string) ([]string, error) {
	quotas, err := l.all(ctx)
	if err != nil || len(quotas) == 0 {
		return nil, err
	}
	project, err := l.namespaces.Get(namespace)
	if err != nil {
		return nil, fmt.Errorf("find project: %w", err)
	}
	var names []string
	for i := range quotas {
		if selects(&quotas[i].Spec.Selector, project) {
			names = append(names, quotas[i].Name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// selected returns the namespaces that a quota selects, sorted.
func (l *ledger) selected(of *quotav1.ClusterResourceQuota) ([]string, error) {
	all, err := l.namespaces.List(labels.Everything())
	if err != nil {
		return nil, fmt.Errorf("list projects: %w", err)
	}
	var names []string
	for _, namespace := range all {
		if selects(&of.Spec.Selector, namespace) {
			names = append(names, namespace.Name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// read returns a quota from the store.
func (l *ledger) read(ctx context.Context, name string) (*quotav1.ClusterResourceQuota, error) {
	object, err := l.stores[resource()].Get(clusterWide(ctx), name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return object.(*quotav1.ClusterResourceQuota).DeepCopy(), nil
}

// write stores a quota's status. It returns an error if the quota has changed since it was read.
func (l *ledger) write(ctx context.Context, changed *quotav1.ClusterResourceQuota) error {
	status := l.stores[quotav1.Resource("clusterresourcequotas/status")]
	_, _, err := status.Update(clusterWide(ctx), changed.Name, rest.DefaultUpdatedObjectInfo(changed),
		rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	return err
}

func clusterWide(ctx context.Context) context.Context {
	return request.WithNamespace(ctx, metav1.NamespaceNone)
}

// GetQuotas returns a namespace's quotas for Kubernetes' evaluator. Their usage is the total usage
// of all selected projects.
func (l *ledger) GetQuotas(namespace string) ([]corev1.ResourceQuota, error) {
	names, err := l.names(context.Background(), namespace)
	if err != nil {
		return nil, err
	}
	var quotas []corev1.ResourceQuota
	for _, name := range names {
		quota, err := l.read(context.Background(), name)
		if err != nil {
			return nil, fmt.Errorf("read cluster quota %q: %w", name, err)
		}
		quotas = append(quotas, corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Name: quota.Name, Namespace: namespace, UID: quota.UID, ResourceVersion: quota.ResourceVersion},
			Spec:       quota.Spec.Quota, Status: quota.Status.Total,
		})
	}
	return quotas, nil
}

// UpdateQuotaStatus increases a quota's usage by the amount that a request in a namespace reserves.
func (l *ledger) UpdateQuotaStatus(usage *corev1.ResourceQuota) error {
	ctx := context.Background()
	item, err := l.read(ctx, usage.Name)
	if err != nil {
		return err
	}
	more := quota.Subtract(usage.Status.Used, item.Status.Total.Used)
	item.ResourceVersion = usage.ResourceVersion // the version for which the usage was evaluated
	item.Status.Total.Used = usage.Status.Used
	at := slices.IndexFunc(item.Status.Namespaces, func(s quotav1.ResourceQuotaStatusByNamespace) bool { return s.Namespace == usage.Namespace })
	if at < 0 {
		item.Status.Namespaces = append(item.Status.Namespaces, quotav1.ResourceQuotaStatusByNamespace{
			Namespace: usage.Namespace, Status: corev1.ResourceQuotaStatus{Hard: item.Status.Total.Hard},
		})
		at = len(item.Status.Namespaces) - 1
	}
	item.Status.Namespaces[at].Status.Used = quota.Add(item.Status.Namespaces[at].Status.Used, more)
	return l.write(ctx, item)
}

// locks serializes requests that reserve usage of the same quota in different projects. Without
// locks, all requests but one would have to be retried.
type locks struct {
	mu    sync.Mutex
	locks map[string]*sync.Mutex
}

// acquire locks quotas, which must be sorted by name, and returns a function that unlocks them.
func (l *locks) acquire(quotas []corev1.ResourceQuota) func() {
	var acquired []*sync.Mutex
	for _, quota := range quotas {
		l.mu.Lock()
		lock, exists := l.locks[quota.Name]
		if !exists {
			if l.locks == nil {
				l.locks = map[string]*sync.Mutex{}
			}
			lock = &sync.Mutex{}
			l.locks[quota.Name] = lock
		}
		l.mu.Unlock()
		lock.Lock()
		acquired = append(acquired, lock)
	}
	return func() {
		for _, lock := range acquired {
			lock.Unlock()
		}
	}
}
