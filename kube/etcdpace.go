package kube

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"golang.org/x/time/rate"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/utils/lru"
)

const (
	// largeValue is the size in bytes above which a write is paced.
	largeValue = 16 << 10
	// ownerRate and totalRate are the bytes of large values per second, for one namespace or
	// cluster-scoped resource, and for all. ownerBurst and totalBurst are what may come at once.
	// Between two compactions the total stays below the quota of the database.
	ownerRate, ownerBurst = 512 << 10, 32 << 20
	totalRate, totalBurst = 4 << 20, 256 << 20
	// maxPaced is the maximum number of limiters in memory.
	maxPaced = 10_000
	// fullFraction is the fraction of the database's quota from which namespaces of users get no
	// new objects and no large changes.
	fullFraction = 0.8
)

// pacer delays large writes, and rejects writes of users when the database is nearly full. Each
// write of a large object takes several times its size of memory, in the log of etcd and the caches
// of the API server, and stays in the database until the next compaction, even if it is a small
// patch of one object. A full database stops the whole control plane.
type pacer struct {
	// used returns the bytes of the database in use. It is nil until etcd has started.
	used atomic.Pointer[func() int64]
	// quota is the size of the database, in bytes, from which etcd rejects every write.
	quota int64

	total *rate.Limiter

	mu       sync.Mutex
	limiters *lru.Cache // of *rate.Limiter by owner
}

func newPacer(quota int64) *pacer {
	return &pacer{quota: quota, total: rate.NewLimiter(totalRate, totalBurst), limiters: lru.New(maxPaced)}
}

// measure sets the function that returns the bytes of the database in use.
func (p *pacer) measure(used func() int64) { p.used.Store(&used) }

// intercept implements grpc.UnaryServerInterceptor.
func (p *pacer) intercept(ctx context.Context, request any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	if txn, ok := request.(*etcdserverpb.TxnRequest); ok {
		if err := p.admit(ctx, txn); err != nil {
			return nil, err
		}
	}
	return next(ctx, request)
}

// admit waits until a transaction may be applied, or fails.
func (p *pacer) admit(ctx context.Context, txn *etcdserverpb.TxnRequest) error {
	for _, operation := range txn.GetSuccess() {
		put := operation.GetRequestPut()
		if put == nil {
			continue
		}
		owner, isNamespace := ownerOf(string(put.GetKey()))
		size := len(put.GetValue())
		isLarge := size > largeValue
		if isNamespace && (isLarge || creates(txn)) && p.isFull() {
			return status.Error(codes.ResourceExhausted, "the store of the cluster is nearly full: delete objects, or ask an administrator of the cluster")
		}
		if !isLarge || owner == "" {
			continue
		}
		for _, limiter := range []*rate.Limiter{p.limiter(owner), p.total} {
			if err := limiter.WaitN(ctx, min(size, limiter.Burst())); err != nil {
				return status.Errorf(codes.ResourceExhausted, "too many large objects are written to %q: %v", owner, err)
			}
		}
	}
	return nil
}

func (p *pacer) isFull() bool {
	used := p.used.Load()
	return used != nil && float64((*used)()) > fullFraction*float64(p.quota)
}

// limiter returns the limiter of an owner.
func (p *pacer) limiter(owner string) *rate.Limiter {
	p.mu.Lock()
	defer p.mu.Unlock()
	if limiter, ok := p.limiters.Get(owner); ok {
		return limiter.(*rate.Limiter)
	}
	limiter := rate.NewLimiter(ownerRate, ownerBurst)
	p.limiters.Add(owner, limiter)
	return limiter
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

// ownerOf returns whose write the write of a key is: a namespace of users, such as shop for
// /kubernetes.io/configmaps/shop/settings, or a cluster-scoped resource, such as images. It is
// empty for nodes and for namespaces of the platform.
func ownerOf(key string) (owner string, isNamespace bool) {
	const (
		clusterScoped = 3 // /kubernetes.io/images/sha256:1
		nodes         = "minions"
	)
	parts := strings.Split(strings.Trim(key, "/"), "/")
	if len(parts) < clusterScoped {
		return "", false
	}
	owner, isNamespace = parts[len(parts)-2], len(parts) > clusterScoped
	ofPlatform := owner == "default" || owner == "openshift" || strings.HasPrefix(owner, "openshift-") || strings.HasPrefix(owner, "kube-")
	if isNamespace && ofPlatform || !isNamespace && owner == nodes {
		return "", false
	}
	return owner, isNamespace
}
