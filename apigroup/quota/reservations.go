package quota

import (
	"context"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	quota "k8s.io/apiserver/pkg/quota/v1"
)

// reservations are the reservations of requests whose objects are possibly not stored yet.
type reservations struct {
	mu     sync.Mutex
	active map[*reservation]bool
}

// reservation is what a request in a namespace reserves of quotas: the maximum usage of its
// objects.
type reservation struct {
	quotas    []string
	namespace string
	uses      corev1.ResourceList
}

// begin adds a reservation, which lasts until its request's context ends or the caller calls
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

// reserved returns the active reservations of a quota, by namespace.
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

// keepReserved returns the usage of a quota's resources: the counted plus the reserved usage, but
// at most the previous usage, because an object that is stored while its request is active is in
// both. The result is at least the counted usage.
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
