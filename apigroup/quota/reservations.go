package quota

import (
	"context"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	quota "k8s.io/apiserver/pkg/quota/v1"
)

// reservations holds the reservations of requests whose objects might not have been stored yet.
type reservations struct {
	mu     sync.Mutex
	active map[*reservation]bool
}

// reservation is the usage that a request in a namespace reserves in quotas: the maximum usage of
// the request's objects.
type reservation struct {
	quotas    []string
	namespace string
	uses      corev1.ResourceList
}

// begin adds a reservation, which lasts until the request's context is done or the caller calls
// release.
func (f *reservations) begin(ctx context.Context, r *reservation) (release func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.active == nil {
		f.active = map[*reservation]bool{}
	}
	f.active[r] = true
	release = func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.active, r)
	}
	context.AfterFunc(ctx, release)
	return release
}

// reserved returns a quota's active reservations, keyed by namespace.
func (f *reservations) reserved(name string) map[string]corev1.ResourceList {
	f.mu.Lock()
	defer f.mu.Unlock()
	reserved := map[string]corev1.ResourceList{}
	for r := range f.active {
		if slices.Contains(r.quotas, name) {
			reserved[r.namespace] = quota.Add(reserved[r.namespace], r.uses)
		}
	}
	return reserved
}

// keepReserved returns the usage of a quota's resources: the sum of the counted and the reserved
// usage, capped at the previous usage. The cap is necessary because both sums include an object
// that is stored while its request is still active. The result is never less than the counted
// usage.
func keepReserved(quantities, reserved, previous corev1.ResourceList) corev1.ResourceList {
	usage := corev1.ResourceList{}
	for name, count := range quantities {
		total := count.DeepCopy()
		total.Add(reserved[name])
		if old := previous[name]; old.Cmp(total) < 0 {
			total = old
		}
		if total.Cmp(count) < 0 {
			total = count
		}
		usage[name] = total
	}
	return usage
}
