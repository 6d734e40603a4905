package kube

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/slipway-platform/slipway/internal/eventually"
	"github.com/slipway-platform/slipway/internal/tenant"
)

// write returns a transaction that creates or changes an object.
func write(key string, size int, create bool) *etcdserverpb.TxnRequest {
	revision := int64(7)
	if create {
		revision = 0
	}
	return &etcdserverpb.TxnRequest{
		Compare: []*etcdserverpb.Compare{{
			Target: etcdserverpb.Compare_MOD, Result: etcdserverpb.Compare_EQUAL, Key: []byte(key),
			TargetUnion: &etcdserverpb.Compare_ModRevision{ModRevision: revision},
		}},
		Success: []*etcdserverpb.RequestOp{{Request: &etcdserverpb.RequestOp_RequestPut{
			RequestPut: &etcdserverpb.PutRequest{Key: []byte(key), Value: make([]byte, size)},
		}}},
	}
}

// try sends a tenant's write, or the platform's if name is empty. A write that would have to wait
// fails.
func try(t *testing.T, p *pacer, name string, txn *etcdserverpb.TxnRequest) (applied bool) {
	t.Helper()
	ctx, cancel := context.WithCancel(incoming(t.Context(), tenant.Mark{Name: name}))
	cancel()
	return send(t, ctx, p, txn)
}

// incoming returns the context of a request that etcd has received with a mark.
func incoming(ctx context.Context, mark tenant.Mark) context.Context {
	md, _ := metadata.FromOutgoingContext(mark.With(ctx))
	return metadata.NewIncomingContext(ctx, md)
}

// send sends a write with the context of a request that etcd has received.
func send(t *testing.T, ctx context.Context, p *pacer, txn *etcdserverpb.TxnRequest) (applied bool) {
	t.Helper()
	_, err := p.intercept(ctx, txn, nil, func(context.Context, any) (any, error) {
		applied = true
		return nil, nil
	})
	if applied == (err != nil) || err != nil && status.Code(err) != codes.ResourceExhausted {
		t.Fatalf("applied: %t, error: %v", applied, err)
	}
	return applied
}

// mark returns the mark of a tenant whose writes may wait.
func mark(name string) tenant.Mark { return tenant.Mark{Name: name} }

// large is the size of a large object, in bytes.
const large = 1 << 20

func TestTenantWritesAreRateLimited(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	p, count := newPacer(databaseQuota, clock), 0
	image := write("/kubernetes.io/image.openshift.io/images/sha256:1", large, true)
	for count < 2*tenantBurst/large && try(t, p, "project evil", image) {
		count++
	}
	if want := tenantBurst / cost(large); count != want {
		t.Errorf("%d large writes of one tenant are admitted, want %d", count, want)
	}
	small := write("/kubernetes.io/configmaps/evil/settings", largeValue, false)
	for count = 0; count < 2*large/largeValue && try(t, p, "project evil", small); count++ {
	}
	if count == 2*large/largeValue {
		t.Error("small writes of a tenant are unlimited")
	}
	for name, c := range map[string]struct {
		tenant string
		txn    *etcdserverpb.TxnRequest
	}{
		"small":             {"project shop", small},
		"another project":   {"project shop", write("/kubernetes.io/configmaps/shop/settings", large, false)},
		"same resource":     {"project shop", image},
		"user of that name": {"user evil", write("/kubernetes.io/namespaces/new", large, false)},
		"deletion":          {"project evil", &etcdserverpb.TxnRequest{Success: []*etcdserverpb.RequestOp{{}}}},
	} {
		if !try(t, p, c.tenant, c.txn) {
			t.Errorf("%s is not admitted", name)
		}
	}
	if clock.Step(time.Second); try(t, p, "project evil", image) {
		t.Errorf("%d bytes are admitted after a second, want %d", large, tenantRate)
	}
	if clock.Step(time.Duration(cost(large)/tenantRate) * time.Second); !try(t, p, "project evil", image) {
		t.Error("the tenant's rate is not admitted")
	}
}

// TestSmallWritesForTenantAreFree deletes the objects of a tenant whose rate is exhausted, and
// writes the status of the tenant's objects as the platform does.
func TestSmallWritesForTenantAreFree(t *testing.T) {
	p := newPacer(databaseQuota, clocktesting.NewFakeClock(time.Now()))
	for try(t, p, "project evil", write("/kubernetes.io/configmaps/evil/a", large, false)) {
	}
	for try(t, p, "project evil", write("/kubernetes.io/configmaps/evil/a", 1, false)) {
	}
	p.measure(func() int64 { return databaseQuota })
	for name, c := range map[string]struct {
		mark tenant.Mark
		txn  *etcdserverpb.TxnRequest
		want bool
	}{
		"deletion":              {tenant.Mark{Deletes: true}, write("/kubernetes.io/pods/evil/a", largeValue, false), true},
		"status by a component": {tenant.Mark{NoWait: true}, write("/kubernetes.io/pods/evil/a", largeValue, false), true},
		"large deletion":        {tenant.Mark{Deletes: true}, write("/kubernetes.io/pods/evil/a", largeValue+1, false), false},
		"large status":          {tenant.Mark{NoWait: true}, write("/kubernetes.io/pods/evil/a", largeValue+1, false), false},
		"object by a component": {tenant.Mark{NoWait: true}, write("/kubernetes.io/pods/evil/a", 1, true), false},
		"change":                {tenant.Mark{}, write("/kubernetes.io/pods/evil/a", 1, false), false},
	} {
		c.mark.Name = "project evil"
		if got := send(t, incoming(t.Context(), c.mark), p, c.txn); got != c.want {
			t.Errorf("%s: admitted: %t, want %t", name, got, c.want)
		}
	}
}

// TestTotalRateFitsDatabase checks that the database has enough space for all values that tenants
// can write before a compaction removes the first of these values.
func TestTotalRateFitsDatabase(t *testing.T) {
	const age = 10 * time.Minute
	if maximum := 2 * (totalBurst + totalRate*int(age/time.Second)); float64(maximum) > fullFraction*databaseQuota {
		t.Errorf("tenants write %d bytes in %s", maximum, age)
	}
	if databaseQuota >= fileQuota {
		t.Error("the file has no space for free pages")
	}
}

func TestPlatformNeverWaitsForTenants(t *testing.T) {
	p := newPacer(databaseQuota, clocktesting.NewFakeClock(time.Now()))
	admitted := 0
	for tenant := range 2 * totalBurst / tenantBurst {
		for try(t, p, fmt.Sprint("project ", tenant), write("/kubernetes.io/configmaps/a/a", large, false)) {
			admitted++
		}
	}
	if want := totalBurst / cost(large); admitted != want {
		t.Errorf("%d large writes of all tenants together are admitted, want %d", admitted, want)
	}
	for range 2 * tenantBurst / large {
		if !try(t, p, "", write("/kubernetes.io/minions/node1", large, false)) {
			t.Fatal("a write of the platform waits")
		}
	}
}

func TestTenantCannotOccupyServerWithWaitingWrites(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	p := newPacer(databaseQuota, clock)
	exhaust := func(tenant string) {
		p.tenant(tenant).limiter.AllowN(clock.Now(), tenantBurst)
	}
	ctx, cancel := context.WithCancel(t.Context())
	results := make(chan error)
	count := 0
	start := func(tenant string) {
		t.Helper()
		count++
		go func() { results <- p.wait(ctx, mark(tenant), largeValue) }()
		eventually.True(t, "the write to wait", func() bool { return clock.Waiters() == count })
	}
	refuses := func(tenant string) {
		t.Helper()
		if err := p.wait(ctx, mark(tenant), largeValue); !errors.Is(err, errWaiting) {
			t.Errorf("another write of %s: %v", tenant, err)
		}
	}
	exhaust("project evil")
	for range maxWaiting {
		start("project evil")
	}
	refuses("project evil")
	if err := p.wait(ctx, mark("project shop"), largeValue); err != nil {
		t.Errorf("a write of another tenant: %v", err)
	}
	// Let many projects fill the queue.
	for project := 0; count < maxTotalWaiting; project++ {
		name := fmt.Sprint("project ", project)
		exhaust(name)
		start(name)
		if count < sharedWaiting {
			start(name)
		} else if count < maxTotalWaiting {
			refuses(name)
		}
	}
	exhaust("project last")
	refuses("project last")
	cancel()
	for range count {
		if err := <-results; !errors.Is(err, context.Canceled) {
			t.Errorf("a write whose request ended: %v", err)
		}
	}
	clock.Step(time.Minute)
	if err := p.wait(t.Context(), mark("project evil"), large); err != nil {
		t.Errorf("writes whose requests ended count: %v", err)
	}
}

func TestProjectsOfUserHaveOneShare(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	p := newPacer(databaseQuota, clock)
	for p.small.try("others", tenantBurst) {
	}
	for p.small.try("others", cost(largeValue)) {
	}
	ctx, cancel := context.WithCancel(t.Context())
	var writes sync.WaitGroup
	defer writes.Wait()
	defer cancel()
	waits := func(count int) {
		t.Helper()
		eventually.True(t, fmt.Sprint(count, " writes to wait"), func() bool {
			p.small.mu.Lock()
			defer p.small.mu.Unlock()
			return len(p.small.waiting) == count
		})
	}
	for project := range maxTotalWaiting {
		evil := tenant.Mark{Name: fmt.Sprint("project evil-", project), Owner: "user mallory"}
		if project >= maxWaiting {
			ended, end := context.WithCancel(ctx)
			end() // a write that has to wait fails
			if err := p.wait(ended, evil, largeValue); !errors.Is(err, errWaiting) {
				t.Errorf("another write of the user: %v", err)
			}
			continue
		}
		writes.Go(func() { _ = p.wait(ctx, evil, largeValue) })
		waits(project + 1)
	}
	result := make(chan error, 1)
	writes.Go(func() { result <- p.wait(ctx, mark("project shop"), largeValue) })
	waits(maxWaiting + 1)
	// The total rate admits one write per interval. One of the first two admitted writes must be
	// the shop project's.
	interval := time.Duration(cost(largeValue)) * time.Second / totalRate
	for remaining := maxWaiting; remaining >= maxWaiting-1; remaining-- {
		eventually.True(t, "the first write to wait for the rate", clock.HasWaiters)
		clock.Step(interval + time.Millisecond)
		waits(remaining)
	}
	eventually.True(t, "the write of another tenant", func() bool { return len(result) > 0 })
	if err := <-result; err != nil {
		t.Error(err)
	}
}

func TestMastersShareRates(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	voters, servers := 3, []*pacer{newPacer(databaseQuota, clock), newPacer(databaseQuota, clock), newPacer(databaseQuota, clock)}
	for _, p := range servers {
		p.tenant("project evil") // creates the tenant's state before etcd starts
		p.shareAmong(func() int { return voters })
	}
	// admitted sends writes to each server until the server rejects one, and returns the number of
	// bytes admitted.
	admitted := func(name func(int) string) (bytes int) {
		for _, p := range servers {
			for i := 0; try(t, p, name(i), write("/kubernetes.io/configmaps/a/a", large, false)); i++ {
				bytes += cost(large)
			}
		}
		return bytes
	}
	evil := func(int) string { return "project evil" }
	within := func(what string, bytes, limit int) {
		t.Helper()
		if least := limit - 2*len(servers)*cost(large); bytes > limit || bytes < least {
			t.Errorf("%s: %d bytes are admitted, want %d to %d", what, bytes, least, limit)
		}
	}
	within("at first", admitted(evil), tenantBurst)
	clock.Step(20 * time.Second)
	within("after 20 s", admitted(evil), 20*tenantRate+len(servers)*cost(large))
	voters = 1 // simulate that the other members were removed
	servers = servers[:1]
	admitted(evil)
	clock.Step(20 * time.Second)
	within("20 s after the removal of two masters", admitted(evil), 20*tenantRate+cost(large))

	voters = 3
	servers = []*pacer{newPacer(databaseQuota, clock), newPacer(databaseQuota, clock), newPacer(databaseQuota, clock)}
	for _, p := range servers {
		p.shareAmong(func() int { return voters })
	}
	within("of all tenants", admitted(func(i int) string { return fmt.Sprint("project ", i) }), totalBurst)
}

func TestRejectedWritesDoNotCount(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	p := newPacer(databaseQuota, clock)
	p.tenant("project evil").limiter.AllowN(clock.Now(), tenantBurst)
	var clients sync.WaitGroup
	for range 100 {
		clients.Go(func() {
			if err := p.wait(t.Context(), mark("project evil"), 4*large); !errors.Is(err, errWaiting) {
				t.Errorf("the write does not fail: %v", err)
			}
		})
	}
	clients.Wait()
	if tokens := p.tenant("project evil").limiter.TokensAt(clock.Now()); tokens < 0 {
		t.Errorf("the tenant has %v bytes left", tokens)
	}
}

func TestWriteDoesNotWaitLong(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	p := newPacer(databaseQuota, clock)
	p.tenant("project evil").limiter.AllowN(clock.Now(), tenantBurst)
	if err := p.wait(t.Context(), mark("project evil"), int(maxDelay/time.Second)*tenantRate+1); !errors.Is(err, errWaiting) {
		t.Errorf("the write does not fail: %v", err)
	}
}

func TestLargeWritesDoNotDelaySmallOnes(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	p := newPacer(databaseQuota, clock)
	for tenant := range totalBurst / tenantBurst {
		for try(t, p, fmt.Sprint("project ", tenant), write("/kubernetes.io/configmaps/a/a", large, false)) {
		}
	}
	for try(t, p, "project last", write("/kubernetes.io/configmaps/a/a", largeValue+1, false)) {
	}
	if !try(t, p, "project shop", write("/kubernetes.io/configmaps/shop/a", largeValue, false)) {
		t.Error("a small write waits")
	}
}

func TestTenantsCannotFillDatabase(t *testing.T) {
	p, size := newPacer(100, clocktesting.NewFakeClock(time.Now())), int64(80)
	p.measure(func() int64 { return size })
	if !try(t, p, "project shop", write("/kubernetes.io/pods/shop/web", 1, true)) {
		t.Error("a database that is not full rejects an object")
	}
	size = 81
	for name, c := range map[string]struct {
		tenant string
		txn    *etcdserverpb.TxnRequest
		want   bool
	}{
		"new object":         {"project shop", write("/kubernetes.io/configmaps/shop/a", 1, true), false},
		"new image":          {"project shop", write("/kubernetes.io/image.openshift.io/images/a", 1, true), false},
		"new project":        {"user alice", write("/kubernetes.io/namespaces/a", 1, true), false},
		"large change":       {"project shop", write("/kubernetes.io/builds/shop/a", largeValue+1, false), false},
		"small change":       {"project shop", write("/kubernetes.io/pods/shop/a", 1000, false), true},
		"token":              {"user alice", write("/kubernetes.io/oauth.openshift.io/oauthaccesstokens/a", 1, true), true},
		"object of platform": {"", write("/kubernetes.io/leases/kube-node-lease/a", 1, true), true},
	} {
		if got := try(t, p, c.tenant, c.txn); got != c.want {
			t.Errorf("%s: admitted: %t, want %t", name, got, c.want)
		}
	}
	size = 91
	if try(t, p, "user alice", write("/kubernetes.io/oauth.openshift.io/oauthaccesstokens/a", 1, true)) {
		t.Error("new tokens are admitted above changeFraction")
	}
	if try(t, p, "project shop", write("/kubernetes.io/pods/shop/a", 1000, false)) {
		t.Error("small changes are admitted above changeFraction")
	}
}

// TestSchedulerNeverWaitsForTenants writes without a deadline. A write that waits blocks the test,
// because the fake clock never advances.
func TestSchedulerNeverWaitsForTenants(t *testing.T) {
	p := newPacer(databaseQuota, clocktesting.NewFakeClock(time.Now()))
	scheduler := func(project string) bool {
		ctx := incoming(t.Context(), tenant.Mark{Name: tenant.Project(project), NoWait: true})
		return send(t, ctx, p, write("/kubernetes.io/pods/"+project+"/web", largeValue+1, false))
	}
	if !scheduler("evil") {
		t.Error("a write for a project without a backlog fails")
	}
	for try(t, p, "project evil", write("/kubernetes.io/configmaps/evil/a", large, false)) {
	}
	for try(t, p, "project evil", write("/kubernetes.io/configmaps/evil/a", largeValue+1, false)) {
	}
	if scheduler("evil") {
		t.Error("writes of the platform for a tenant exceed the tenant's share")
	}
	if !scheduler("shop") {
		t.Error("a write for another project fails")
	}
	for flooding := range totalBurst / tenantBurst {
		for try(t, p, fmt.Sprint("project ", flooding), write("/kubernetes.io/configmaps/a/a", large, false)) {
		}
	}
	for try(t, p, "project last", write("/kubernetes.io/configmaps/a/a", largeValue+1, false)) {
	}
	if scheduler("shop") {
		t.Error("a write is admitted although the total is used")
	}
}

func TestPacerPassesErrorsOn(t *testing.T) {
	want := errors.New("etcd rejects it")
	_, err := newPacer(1, clock.RealClock{}).intercept(t.Context(), &etcdserverpb.RangeRequest{}, nil, func(context.Context, any) (any, error) { return nil, want })
	if !errors.Is(err, want) {
		t.Errorf("error is %v", err)
	}
}

// TestEtcdPacesLargeWrites connects to a real member over its Unix socket.
func TestEtcdPacesLargeWrites(t *testing.T) {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"unix://" + startEtcd(t)}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	write := func(name, key string, size int) error {
		// Tokens for half of a large value become available in this time.
		ctx, cancel := context.WithTimeout(tenant.Mark{Name: name}.With(t.Context()), time.Second)
		defer cancel()
		_, err := client.Txn(ctx).Then(clientv3.OpPut(key, strings.Repeat("x", size))).Commit()
		return err
	}
	rejected := false
	for range 2*tenantBurst/large + 1 {
		err := write("project evil", "/kubernetes.io/configmaps/evil/flood", large)
		if rejected = status.Code(err) == codes.ResourceExhausted; rejected {
			break
		}
	}
	if !rejected {
		t.Error("large writes of one tenant have no limit")
	}
	for key, tenant := range map[string]string{"/kubernetes.io/configmaps/evil/small": "project evil", "/kubernetes.io/configmaps/shop/small": "project \u00dcmit"} {
		eventually.True(t, "a small write to "+key, func() bool { return write(tenant, key, 100) == nil })
	}
}
