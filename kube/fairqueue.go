package kube

import (
	"container/heap"
	"context"
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/utils/clock"
)

// fairQueue shares a rate among tenants with start-time fair queueing (P. Goyal and others, 1996).
// While writes wait, each tenant with waiting writes can write the same number of bytes, regardless
// of how many writes it has.
type fairQueue struct {
	clock   clock.Clock
	limiter *rate.Limiter // guarded by mu, so that only the first turn takes tokens

	mu      sync.Mutex
	waiting turns
	// position is the start of the most recently admitted turn. ends maps each tenant to the end of
	// its last turn. Both are in bytes.
	position int64
	ends     map[string]int64
	count    int64 // total number of turns
}

// turn is a waiting write.
type turn struct {
	start, number int64
	size          int
	index         int           // index in the heap of waiting turns
	first         chan struct{} // receives a value when the turn reaches the front
}

func newFairQueue(clock clock.Clock, bytesPerSecond rate.Limit, burst int) *fairQueue {
	return &fairQueue{clock: clock, limiter: rate.NewLimiter(bytesPerSecond, burst), ends: map[string]int64{}}
}

// limit changes the rate, and the number of bytes that can be written without delay.
func (q *fairQueue) limit(bytesPerSecond rate.Limit, burst int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	setLimit(q.limiter, q.clock.Now(), bytesPerSecond, burst)
}

// setLimit changes a limiter's limits, unless they are already set. The limiter keeps its tokens or
// its debt, but at most as many tokens as the new burst.
func setLimit(limiter *rate.Limiter, now time.Time, bytesPerSecond rate.Limit, burst int) {
	if limiter.Limit() != bytesPerSecond {
		limiter.SetLimitAt(now, bytesPerSecond)
		limiter.SetBurstAt(now, burst)
	}
}

// wait blocks until a tenant may write size bytes. It fails if ctx is done first.
func (q *fairQueue) wait(ctx context.Context, tenant string, size int) error {
	t := q.join(tenant, size)
	for {
		admitted, delay := q.take(t)
		if admitted {
			return nil
		}
		if err := q.sleep(ctx, t, delay); err != nil {
			q.leave(t)
			return err
		}
	}
}

// try reports whether a tenant may write size bytes without waiting. This requires that the rate
// allows the write and that no waiting write comes first.
func (q *fairQueue) try(tenant string, size int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	size = min(size, q.limiter.Burst())
	start := max(q.position, q.ends[tenant])
	isNext := len(q.waiting) == 0 || start <= q.waiting[0].start
	if !isNext || !q.limiter.AllowN(q.clock.Now(), size) {
		return false
	}
	if len(q.waiting) > 0 {
		q.position, q.ends[tenant] = start, start+int64(size)
	}
	return true
}

// sleep returns after the delay, if any, or when the turn reaches the front of the queue.
func (q *fairQueue) sleep(ctx context.Context, t *turn, delay time.Duration) error {
	var expired <-chan time.Time
	if delay > 0 {
		timer := q.clock.NewTimer(delay)
		defer timer.Stop()
		expired = timer.C()
	}
	select {
	case <-t.first:
	case <-expired:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// join adds a turn behind its tenant's other turns.
func (q *fairQueue) join(tenant string, size int) *turn {
	q.mu.Lock()
	defer q.mu.Unlock()
	size = min(size, q.limiter.Burst())
	q.count++
	t := &turn{start: max(q.position, q.ends[tenant]), number: q.count, size: size, first: make(chan struct{}, 1)}
	q.ends[tenant] = t.start + int64(size)
	heap.Push(&q.waiting, t)
	return t
}

// take removes the turn if it is at the front of the queue and the rate allows its size. Otherwise,
// it returns the delay until the rate allows it. The delay is 0 if the turn is not at the front.
func (q *fairQueue) take(t *turn) (admitted bool, delay time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waiting[0] != t {
		return false, 0
	}
	now, size := q.clock.Now(), min(t.size, q.limiter.Burst())
	if q.limiter.AllowN(now, size) {
		q.position = t.start
		q.remove(t)
		return true, 0
	}
	missing := float64(size) - q.limiter.TokensAt(now)
	return false, time.Duration(math.Ceil(missing / float64(q.limiter.Limit()) * float64(time.Second)))
}

// leave removes a turn whose request has ended.
func (q *fairQueue) leave(t *turn) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.remove(t)
}

func (q *fairQueue) remove(t *turn) {
	heap.Remove(&q.waiting, t.index)
	if len(q.waiting) == 0 {
		q.position = 0
		clear(q.ends)
		return
	}
	select {
	case q.waiting[0].first <- struct{}{}:
	default: // the last value is still in the channel
	}
}

// turns is a heap of waiting turns. The first turn in the heap is admitted next.
type turns []*turn

// Len implements heap.Interface.
func (t turns) Len() int { return len(t) }

// Less implements heap.Interface.
func (t turns) Less(i, j int) bool {
	if t[i].start != t[j].start {
		return t[i].start < t[j].start
	}
	return t[i].number < t[j].number
}

// Swap implements heap.Interface.
func (t turns) Swap(i, j int) {
	t[i], t[j] = t[j], t[i]
	t[i].index, t[j].index = i, j
}

// Push implements heap.Interface.
func (t *turns) Push(x any) {
	added := x.(*turn)
	added.index = len(*t)
	*t = append(*t, added)
}

// Pop implements heap.Interface.
func (t *turns) Pop() any {
	last := len(*t) - 1
	removed := (*t)[last]
	*t = (*t)[:last]
	return removed
}
