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
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	"github.com/slipway-platform/slipway/internal/tenant"
)

const (
	// largeValue is the size in bytes above which a write is paced.
	largeValue = 16 << 10
	// tenantRate and totalRate are the bytes of large values per second, for one tenant and for
	// all. tenantBurst and totalBurst can be written at the same time. Between two compactions, the
	// total stays below the quota of the database.
	tenantRate, tenantBurst = 512 << 10, 32 << 20
	totalRate, totalBurst   = 4 << 20, 256 << 20
	// maxWaiting is the maximum number of large writes of one tenant that wait. Each of them
	// occupies the API server, which serves a limited number of requests at the same time.
	maxWaiting = 8
	// maxPaced is the maximum number of tenants in memory.
	maxPaced = 10_000
	// fullFraction is the fraction of the database's quota from which tenants get no new objects
	// and no large changes.
	fullFraction = 0.8
	// loginFraction is the fraction from which no user can log in.
	loginFraction = 0.9
	// loginKeys is part of the keys of codes, tokens and grants. A user needs them to delete
	// objects when the database is full.
	loginKeys = "/oauth.openshift.io/oauth"
)

// pacer delays large writes of tenants, and rejects their writes when the database is nearly full.
// Each write of a large object takes several times its size of memory, in the log of etcd and the
// caches of the API server, and stays in the database until the next compaction, even if it is a
// small patch of one object. A full database stops the whole control plane.
//
// A tenant is a project or a user (markTenant). The platform's own writes have no limits. Where its
// components write objects of a tenant, they fail instead of waiting.
type pacer struct {
	// size returns the bytes of the database in use. It is nil until etcd has started.
	size atomic.Pointer[func() int64]
	// quota is the size of the database, in bytes, from which etcd rejects every write.
	quota int64

	clock clock.Clock
	total *fairQueue

	mu      sync.Mutex
	tenants *lru.Cache // of *tenantPace by tenant
}

// tenantPace is the state of one tenant.
type tenantPace struct {
	limiter *rate.Limiter
	waiting atomic.Int32
}

func newPacer(quota int64, clock clock.Clock) *pacer {
	return &pacer{quota: quota, clock: clock, total: newFairQueue(clock, totalRate, totalBurst), tenants: lru.New(maxPaced)}
}

// measure sets the function that returns the bytes of the database in use.
func (p *pacer) measure(size func() int64) { p.size.Store(&size) }

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

// admit waits until a transaction of a tenant may be applied, or fails.
func (p *pacer) admit(ctx context.Context, mark tenant.Mark, txn *etcdserverpb.TxnRequest) error {
	for _, operation := range txn.GetSuccess() {
		request := operation.GetRequestPut()
		if request == nil {
			continue
		}
		size := len(request.GetValue())
		isLarge := size > largeValue
		if (isLarge || creates(txn)) && p.isFull(string(request.GetKey())) {
			return status.Error(codes.ResourceExhausted, "the store of the cluster is nearly full: delete objects, or ask an administrator of the cluster")
		}
		if !isLarge {
			continue
		}
		if err := p.pace(ctx, mark, size); err != nil {
			return status.Errorf(codes.ResourceExhausted, "too many large objects are written for %s: %v; try again later", mark.Name, err)
		}
	}
	return nil
}

// errWaiting rejects a large write of a tenant for which enough of them wait, or that would have to
// wait and must not.
var errWaiting = errors.New("others wait already")

// pace waits until a large write is allowed, or fails if the writer must not wait.
func (p *pacer) pace(ctx context.Context, mark tenant.Mark, size int) error {
	if !mark.NoWait {
		return p.wait(ctx, mark.Name, size)
	}
	if !p.tenant(mark.Name).limiter.AllowN(p.clock.Now(), min(size, tenantBurst)) || !p.total.try(mark.Name, size) {
		return errWaiting
	}
	return nil
}

// wait blocks until the tenant's own rate, and then its share of the total, allow a large write.
func (p *pacer) wait(ctx context.Context, tenant string, size int) error {
	pace := p.tenant(tenant)
	defer pace.waiting.Add(-1)
	if pace.waiting.Add(1) > maxWaiting {
		return errWaiting
	}
	now := p.clock.Now()
	reservation := pace.limiter.ReserveN(now, min(size, tenantBurst))
	delay := reservation.DelayFrom(now)
	if err := p.sleep(ctx, now, delay); err != nil {
		reservation.CancelAt(p.clock.Now())
		return err
	}
	return p.total.wait(ctx, tenant, size)
}

// sleep waits for a delay. It fails immediately if ctx ends before.
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

// isFull reports whether the database is too full for a new object or a large change of a tenant.
func (p *pacer) isFull(key string) bool {
	fraction := fullFraction
	if strings.Contains(key, loginKeys) {
		fraction = loginFraction
	}
	size := p.size.Load()
	return size != nil && float64((*size)()) > fraction*float64(p.quota)
}

// tenant returns the state of a tenant.
func (p *pacer) tenant(name string) *tenantPace {
	p.mu.Lock()
	defer p.mu.Unlock()
	if pace, ok := p.tenants.Get(name); ok {
		return pace.(*tenantPace)
	}
	pace := &tenantPace{limiter: rate.NewLimiter(tenantRate, tenantBurst)}
	p.tenants.Add(name, pace)
	return pace
}

// creates reports whether a transaction creates its object: it applies only if the key doesn't
// exist.
func creates(txn *etcdserverpb.TxnRequest) bool {
	for _, condition := range txn.GetCompare() {
		if condition.GetTarget() == etcdserverpb.Compare_MOD && condition.GetResult() == etcdserverpb.Compare_EQUAL && condition.GetModRevision() == 0 {
			return true
		}
	}
	return false
}
