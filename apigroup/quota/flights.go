package quota

import (
	"context"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	quota "k8s.io/apiserver/pkg/quota/v1"
)

// flights are the requests that have reserved something of a quota and whose objects are perhaps not stored yet.
type flights struct {
	mu    sync.Mutex
	under map[*reservation]bool
}

// reservation is what one request in a namespace reserves of some quotas: at most what its objects use.
type reservation struct {
	quotas    []string
	namespace string
	uses      corev1.ResourceList
}

// begin notes a reservation, which is under way until its request's context ends or end is called.
func (f *flights) begin(ctx context.Context, made *reservation) (end func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.under == nil {
		f.under = map[*reservation]bool{}
	}
	f.under[made] = true
	end = func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.under, made)
	}
	context.AfterFunc(ctx, end)
	return end
}

// reserved is what requests under way have reserved of a quota, by namespace.
func (f *flights) reserved(name string) map[string]corev1.ResourceList {
	f.mu.Lock()
	defer f.mu.Unlock()
	reserved := map[string]corev1.ResourceList{}
	for made := range f.under {
		if slices.Contains(made.quotas, name) {
			reserved[made.namespace] = quota.Add(reserved[made.namespace], made.uses)
		}
	}
	return reserved
}

// keepReserved is what is used of a quota's resources: what was counted, with what is reserved, but no more than was used before. An object that is
// stored while its request is under way may be in both of the first.
func keepReserved(counted, reserved, before corev1.ResourceList) corev1.ResourceList {
	used := corev1.ResourceList{}
	for name, is := range counted {
		most := is.DeepCopy()
		most.Add(reserved[name])
		if was := before[name]; was.Cmp(most) < 0 {
			most = was
		}
		if most.Cmp(is) < 0 {
			most = is
		}
		used[name] = most
	}
	return used
}
