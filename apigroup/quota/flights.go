package quota

import (
	"context"
	"sync"
)

// flights are the requests that have reserved something of a quota and whose objects are perhaps not stored yet.
type flights struct {
	mu    sync.Mutex
	under map[string]int // requests by quota
}

// begin notes a request for some quotas, which is under way until its context ends or end is called.
func (f *flights) begin(ctx context.Context, quotas []string) (end func()) {
	f.add(quotas, 1)
	end = sync.OnceFunc(func() { f.add(quotas, -1) })
	context.AfterFunc(ctx, end)
	return end
}

func (f *flights) add(quotas []string, change int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.under == nil {
		f.under = map[string]int{}
	}
	for _, name := range quotas {
		if f.under[name] += change; f.under[name] == 0 {
			delete(f.under, name)
		}
	}
}

// busy tells whether requests for a quota are under way.
func (f *flights) busy(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.under[name] > 0
}
