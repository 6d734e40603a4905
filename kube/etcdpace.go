package kube

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"golang.org/x/time/rate"
	"google.golang.org/grpc"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	"github.com/slipway-platform/slipway/internal/tenant"
)

const (
	// largeValue is the size in bytes above which a value is considered large.
	largeValue = 16 << 10
	// writeOverhead is the size in bytes of the data that etcd stores in addition to each value:
	// its key and index entries.
	writeOverhead = 1 << 10
	// tenantRate is the rate for one tenant, in bytes per second. totalRate is the rate for the
	// small values of all tenants together. It also applies, separately, to their large values, so
	// that large values do not delay small values. tenantBurst and totalBurst are the numbers of
	// bytes that can be written without delay.
	//
	// A compaction every five minutes keeps the revisions from the last five minutes, so the
	// database contains up to ten minutes of revisions. The total that tenants can write in this
	// time is less than fullFraction of the database. If etcd has several voting members, each
	// member allows its share of the rates, because clients can use all members.
	tenantRate, tenantBurst = 512 << 10, 32 << 20
	totalRate, totalBurst   = 1 << 20, 160 << 20
	// maxDelay is the maximum time that a write waits for its tenant's rate limit. Clients handle
	// longer delays themselves: they receive an error and retry.
	maxDelay = 2 * time.Second
	// maxWaiting is the maximum number of waiting writes per tenant. Each waiting write occupies
	// one of the limited number of requests, including reads, that the API server serves
	// concurrently. While sharedWaiting or more writes wait, only one write per tenant can wait. At
	// most maxTotalWaiting writes wait in total.
	maxWaiting, sharedWaiting, maxTotalWaiting = 4, 16, 32
	// maxPaced is the maximum number of tenants whose state is kept in memory.
	maxPaced = 10_000
	// fullFraction is the fraction of the database's quota above which tenants cannot create
	// objects or make large changes.
	fullFraction = 0.8
	// changeFraction is the fraction above which tenants can only delete objects, and users cannot
	// log in.
	changeFraction = 0.9
	// loginKeys is a substring of the keys of codes, tokens and grants. Users need them to log in
	// and delete objects when the database is full.
	loginKeys = "/oauth.openshift.io/oauth"
)

// pacer delays tenants' writes, and rejects them when the database is nearly full. Each write, even
// a small patch, uses several times the object's size in memory, in etcd's log and in the API
// server's caches. It also stays in the database until the next compaction. A full database stops
// the whole control plane.
//
// A tenant is a project or a user (see markTenant). The platform's own writes are not limited. If a
// platform component writes a tenant's large object, the write fails instead of waiting. Small
// writes by platform components, and small writes that delete a tenant's objects, do not count
// toward any tenant's limits. The platform itself limits the rate of its components, and each
// object can be deleted only once.
type pacer struct {
	// size returns the number of database bytes in use. It is nil until etcd has started.
	size atomic.Pointer[func() int64]
	// voters returns the number of etcd members that share the rates. It is nil until etcd has
	// started.
	voters atomic.Pointer[func() int]
	// quota is the maximum size of the database in bytes.
	quota int64

	clock        clock.Clock
	small, large *fairQueue // queues that enforce the total rates

	mu      sync.Mutex
	tenants *lru.Cache // maps a tenant to its *tenantPace
	waiting int        // number of waiting writes of all tenants
}

// tenantPace contains one tenant's state.
type tenantPace struct {
	limiter *rate.Limiter
	waiting int // guarded by the pacer's mu
}

func newPacer(quota int64, clock clock.Clock) *pacer {
	return &pacer{
		quota: quota, clock: clock, tenants: lru.New(maxPaced),
		small: newFairQueue(clock, totalRate, totalBurst), large: newFairQueue(clock, totalRate, totalBurst),
	}
}

// measure sets the function that returns the number of database bytes in use.
func (p *pacer) measure(size func() int64) { p.size.Store(&size) }

// shareAmong sets the function that returns the number of etcd members that share the rates.
func (p *pacer) shareAmong(voters func() int) { p.voters.Store(&voters) }

// sharing returns the number of members that share the rates, at least 1.
func (p *pacer) sharing() int {
	if voters := p.voters.Load(); voters != nil {
		return max((*voters)(), 1)
	}
	return 1
}

// intercept implements grpc.UnaryServerInterceptor.
func (p *pacer) intercept(ctx context.Context, request any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	if txn, ok := request.(*etcdserverpb.TxnRequest); ok {
		if mark := tenant.Incoming(ctx); mark.Name != "" {
			if err := p.admit(ctx, mark, txn); err != nil {
				return nil, err
			}
		}
	}
	return next(ctx, request)
}

// admit waits until a tenant's transaction may be applied, or fails.
func (p *pacer) admit(ctx context.Context, mark tenant.Mark, txn *etcdserverpb.TxnRequest) error {
	for _, operation := range txn.GetSuccess() {
		request := operation.GetRequestPut()
		if request == nil {
			continue
		}
		size := len(request.GetValue())
		if p.uses(limitOf(mark, request, creates(txn))) {
			return full()
		}
		if isFree(mark, size) {
			continue
		}
		if err := p.pace(ctx, mark, size); err != nil {
			return p.tooMany(mark.Name, size, err)
		}
	}
	return nil
}

// isFree reports whether a write to a tenant's object does not count toward the tenant's limits.
func isFree(mark tenant.Mark, size int) bool {
	return size <= largeValue && (mark.NoWait || mark.Deletes)
}

// limitOf returns the fraction of the database up to which a write is admitted.
func limitOf(mark tenant.Mark, request *etcdserverpb.PutRequest, creates bool) float64 {
	size := len(request.GetValue())
	switch {
	case strings.Contains(string(request.GetKey()), loginKeys):
		return changeFraction
	case creates, size > largeValue && !mark.Deletes:
		return fullFraction
	case isFree(mark, size):
		return 1
	}
	return changeFraction
}

// errWaiting rejects a tenant's write that cannot be applied immediately. The reason is that the
// writer must not wait, that the wait would be too long, or that too many writes are already
// waiting.
var errWaiting = errors.New("other writes are already waiting")

// pace waits until a write is allowed, or fails if the writer must not wait.
func (p *pacer) pace(ctx context.Context, mark tenant.Mark, size int) error {
	if !mark.NoWait {
		return p.wait(ctx, mark, size)
	}
	pace := p.tenant(mark.Name)
	if !pace.limiter.AllowN(p.clock.Now(), pace.cost(size)) || !p.total(size).try(mark.Share(), cost(size)) {
		return errWaiting
	}
	return nil
}

// cost returns the number of bytes that a limit counts for a write whose value has the given size.
func cost(size int) int { return size + writeOverhead }

// cost returns the number of bytes that the tenant's limit counts for a write. This number never
// exceeds the burst, because the limiter would never allow a larger write.
func (t *tenantPace) cost(size int) int { return min(cost(size), t.limiter.Burst()) }

// total returns the queue that all tenants share for values of the given size.
func (p *pacer) total(size int) *fairQueue {
	queue := p.small
	if size > largeValue {
		queue = p.large
	}
	voters := p.sharing()
	queue.limit(totalRate/rate.Limit(voters), totalBurst/voters)
	return queue
}

// wait blocks until the tenant's own rate, and then its share of the total rate, allow a write. The
// share and the limit on waiting writes apply to all projects of a user together.
func (p *pacer) wait(ctx context.Context, mark tenant.Mark, size int) error {
	pace, share, total, bytes := p.tenant(mark.Name), mark.Share(), p.total(size), cost(size)
	if p.delay(pace, size) > maxDelay {
		return errWaiting
	}
	now := p.clock.Now()
	reservation := pace.limiter.ReserveN(now, pace.cost(size))
	delay := reservation.DelayFrom(now)
	if delay == 0 && total.try(share, bytes) {
		return nil
	}
	queue := p.tenant(share)
	if delay > maxDelay || !p.enter(queue) {
		reservation.CancelAt(now)
		return errWaiting
	}
	defer p.leave(queue)
	if err := p.sleep(ctx, now, delay); err != nil {
		reservation.CancelAt(p.clock.Now())
		return err
	}
	return total.wait(ctx, share, bytes)
}

// delay returns how long it takes until a tenant's rate allows a value to be written. It does not
// reserve tokens, because a rejected write must not use any.
func (p *pacer) delay(pace *tenantPace, size int) time.Duration {
	missing := float64(pace.cost(size)) - pace.limiter.TokensAt(p.clock.Now())
	return max(0, time.Duration(missing/float64(pace.limiter.Limit())*float64(time.Second)))
}

// enter reports whether another write by a tenant may wait. If so, it counts the write as waiting.
func (p *pacer) enter(pace *tenantPace) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if pace.waiting >= maxWaiting || p.waiting >= maxTotalWaiting || pace.waiting > 0 && p.waiting >= sharedWaiting {
		return false
	}
	pace.waiting++
	p.waiting++
	return true
}

// leave undoes enter.
func (p *pacer) leave(pace *tenantPace) {
	p.mu.Lock()
	defer p.mu.Unlock()
	pace.waiting--
	p.waiting--
}

// sleep waits for a delay. It fails immediately if ctx would be done before the delay has passed.
func (p *pacer) sleep(ctx context.Context, now time.Time, delay time.Duration) error {
	if delay <= 0 {
		return nil
	}
	if deadline, ok := ctx.Deadline(); ok && deadline.Before(now.Add(delay)) {
		return context.DeadlineExceeded
	}
	timer := p.clock.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// uses reports whether more than the given fraction of the database is in use.
func (p *pacer) uses(fraction float64) bool {
	size := p.size.Load()
	return size != nil && float64((*size)()) > fraction*float64(p.quota)
}

// tenant returns a tenant's state, with limits for the current number of voters.
func (p *pacer) tenant(name string) *tenantPace {
	voters := p.sharing()
	limit, burst := tenantRate/rate.Limit(voters), tenantBurst/voters
	p.mu.Lock()
	defer p.mu.Unlock()
	if existing, ok := p.tenants.Get(name); ok {
		pace := existing.(*tenantPace)
		setLimit(pace.limiter, p.clock.Now(), limit, burst)
		return pace
	}
	pace := &tenantPace{limiter: rate.NewLimiter(limit, burst)}
	p.tenants.Add(name, pace)
	return pace
}

// creates reports whether a transaction creates its object, that is, whether it is applied only if
// the key does not exist.
func creates(txn *etcdserverpb.TxnRequest) bool {
	for _, condition := range txn.GetCompare() {
		if condition.GetTarget() == etcdserverpb.Compare_MOD && condition.GetResult() == etcdserverpb.Compare_EQUAL && condition.GetModRevision() == 0 {
			return true
		}
	}
	return false
}
