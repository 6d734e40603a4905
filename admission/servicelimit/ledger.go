package servicelimit

import (
	"fmt"
	"sync"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/slipway-platform/slipway/internal/projectowner"
)

// key identifies a counted object. The name of an Endpoints object is the name of its service.
type key struct {
	kind            kind
	namespace, name string
}

// counted holds the weight of an object. source is the key of the object itself or, if a controller
// created the object from an Endpoints object, the key of the Endpoints object.
type counted struct {
	source key
	weight int
}

// reservationTime is how long an admitted object counts toward the limit while it is not in the
// cache yet.
const reservationTime = 10 * time.Second

// reservation is an object that was admitted but might not have been stored yet.
type reservation struct {
	counted
	until time.Time
}

// sourceOf returns the source of the object with the given key. All EndpointSlices of a service and
// the Endpoints object with the service's name have the same source.
func sourceOf(object any, of key) key {
	if endpointSlice, ok := object.(*discoveryv1.EndpointSlice); ok {
		return key{endpoints, of.namespace, endpointSlice.Labels[discoveryv1.LabelServiceName]}
	}
	return of
}

// ledger tracks the weights of the objects in each project.
type ledger struct {
	weigh func(object any) int
	// perProject is added to an owner's limit for each of the owner's projects.
	perProject int

	namespaces cache.SharedIndexInformer // nil until the ledger is used
	caches     []cache.InformerSynced

	mu       sync.Mutex
	stored   map[key]counted
	sums     map[string]int                 // sums of the weights in stored, by namespace
	bySource map[key]int                    // the same sums by source
	reserved map[string]map[key]reservation // reservations by namespace
}

func newLedger(weigh func(any) int, perProject int) *ledger {
	return &ledger{
		weigh: weigh, perProject: perProject,
		stored: map[key]counted{}, sums: map[string]int{}, bySource: map[key]int{}, reserved: map[string]map[key]reservation{},
	}
}

// use starts counting the objects in the API server's caches. Only the first call has an effect.
func (l *ledger) use(factory informers.SharedInformerFactory) error {
	if l.namespaces != nil {
		return nil
	}
	namespaces := factory.Core().V1().Namespaces().Informer()
	if err := projectowner.Index(namespaces); err != nil {
		return err
	}
	l.caches = []cache.InformerSynced{namespaces.HasSynced}
	for _, informer := range []cache.SharedIndexInformer{factory.Core().V1().Services().Informer(), factory.Discovery().V1().EndpointSlices().Informer()} {
		handler, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: l.note, UpdateFunc: func(_, object any) { l.note(object) }, DeleteFunc: l.forget,
		})
		if err != nil {
			return fmt.Errorf("count combinations of port and endpoint: %w", err)
		}
		l.caches = append(l.caches, handler.HasSynced)
	}
	l.namespaces = namespaces
	return nil
}

func (l *ledger) synced() bool {
	for _, synced := range l.caches {
		if !synced() {
			return false
		}
	}
	return true
}

func (l *ledger) note(object any)   { l.set(object, l.weigh(object)) }
func (l *ledger) forget(object any) { l.set(object, 0) }

// set stores the weight of a cached object, and removes the object's reservation.
func (l *ledger) set(object any, weight int) {
	if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = unknown.Obj
	}
	meta, ok := object.(metav1.Object)
	if !ok {
		return
	}
	of := key{kindOf(object), meta.GetNamespace(), meta.GetName()}
	l.mu.Lock()
	defer l.mu.Unlock()
	before, after := l.stored[of], counted{sourceOf(object, of), weight}
	for _, change := range []counted{{before.source, -before.weight}, after} {
		adjust(l.sums, of.namespace, change.weight)
		adjust(l.bySource, change.source, change.weight)
	}
	if l.stored[of] = after; weight == 0 {
		delete(l.stored, of)
	}
	delete(l.reserved[of.namespace], of)
	delete(l.reserved[of.namespace], after.source)
}

// adjust adds change to a sum. It removes the sum if the result is zero.
func adjust[K comparable](sums map[K]int, of K, change int) {
	if sums[of] += change; sums[of] == 0 {
		delete(sums, of)
	}
}

// add counts an object, unless the sum would exceed the limit on the owner's projects. It returns
// the usage of the owner's other objects and the limit.
func (l *ledger) add(of key, added reservation, limit int, dryRun bool) (used, total int, ok bool) {
	now := time.Now()
	projects, total := l.projects(of.namespace, limit)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, project := range projects {
		used += l.sums[project]
		for other, r := range l.reserved[project] {
			switch {
			case now.After(r.until):
				delete(l.reserved[project], other)
			case other != of && other != added.source && r.source != of:
				used += max(0, r.weight-l.current(other))
			}
		}
		if len(l.reserved[project]) == 0 {
			delete(l.reserved, project)
		}
	}
	used -= l.current(of)
	if used+added.weight > total {
		return used, total, false
	}
	if !dryRun {
		if l.reserved[of.namespace] == nil {
			l.reserved[of.namespace] = map[key]reservation{}
		}
		l.reserved[of.namespace][of] = added
	}
	return used, total, true
}

// current returns the stored weight of an object. For an Endpoints object, it returns the total
// weight of the EndpointSlices that belong to the same service.
func (l *ledger) current(of key) int {
	if of.kind == endpoints {
		return l.bySource[of]
	}
	return l.stored[of].weight
}

// projects returns all projects of a project's owner and the limit on their total usage.
func (l *ledger) projects(namespace string, limit int) (names []string, total int) {
	names = projectowner.Projects(l.namespaces.GetIndexer(), namespace)
	return names, limit + l.perProject*len(names)
}
