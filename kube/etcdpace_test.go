package kube

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/slipway-platform/slipway/internal/certtest"
	"github.com/slipway-platform/slipway/internal/componenttest"
	"github.com/slipway-platform/slipway/internal/eventually"
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

// try sends a write to a pacer. It does not wait for long: the context ends before the pacer admits
// a write above the burst.
func try(t *testing.T, p *pacer, txn *etcdserverpb.TxnRequest) (applied bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := p.intercept(ctx, txn, nil, func(context.Context, any) (any, error) {
		applied = true
		return nil, nil
	})
	if applied == (err != nil) || err != nil && status.Code(err) != codes.ResourceExhausted {
		t.Fatalf("applied: %t, error: %v", applied, err)
	}
	return applied
}

func TestNamespaceCannotFloodStore(t *testing.T) {
	const large = 1 << 20
	p, count := newPacer(databaseQuota), 0
	for count < 2*ownerBurst/large && try(t, p, write("/kubernetes.io/configmaps/evil/flood", large, false)) {
		count++
	}
	if count < ownerBurst/large || count > ownerBurst/large+2 {
		t.Errorf("%d large writes of one namespace are admitted, want about %d", count, ownerBurst/large)
	}
	for name, txn := range map[string]*etcdserverpb.TxnRequest{
		"small":             write("/kubernetes.io/configmaps/evil/settings", largeValue, false),
		"another namespace": write("/kubernetes.io/configmaps/shop/settings", large, false),
		"deletion":          {Success: []*etcdserverpb.RequestOp{{}}},
	} {
		if !try(t, p, txn) {
			t.Errorf("%s is not admitted", name)
		}
	}
	// Users of all namespaces must not stop the platform.
	for range 2 * ownerBurst / large {
		if !try(t, p, write("/kubernetes.io/minions/node1", large, false)) || !try(t, p, write("/kubernetes.io/configmaps/kube-system/a", large, false)) {
			t.Fatal("the platform waits")
		}
	}
	left := int(p.total.Tokens())
	if !p.total.AllowN(time.Now(), left) { // what many namespaces write
		t.Fatalf("%d bytes are not free", left)
	}
	if try(t, p, write("/kubernetes.io/configmaps/evil2/flood", large, false)) {
		t.Error("there is no limit for all namespaces together")
	}
	if !try(t, p, write("/kubernetes.io/minions/node1", large, false)) {
		t.Error("the platform waits for users")
	}
}

func TestUsersCannotFillDatabase(t *testing.T) {
	p, used := newPacer(100), int64(80)
	p.measure(func() int64 { return used })
	if !try(t, p, write("/kubernetes.io/pods/shop/web", 1, true)) {
		t.Error("a database that is not full rejects an object")
	}
	used = 81
	for name, c := range map[string]struct {
		txn  *etcdserverpb.TxnRequest
		want bool
	}{
		"new object":            {write("/kubernetes.io/configmaps/shop/a", 1, true), false},
		"large change":          {write("/openshift.io/builds/shop/a", largeValue+1, false), false},
		"small change":          {write("/kubernetes.io/pods/shop/a", 1000, false), true},
		"lease of a node":       {write("/kubernetes.io/leases/kube-node-lease/a", 1, true), true},
		"object of the cluster": {write("/kubernetes.io/minions/a", 1, true), true},
		"default namespace":     {write("/kubernetes.io/services/specs/default/a", 1, true), true},
		"name like platform's":  {write("/kubernetes.io/services/specs/kubeshop/a", 1, true), false},
	} {
		if got := try(t, p, c.txn); got != c.want {
			t.Errorf("%s: admitted: %t, want %t", name, got, c.want)
		}
	}
}

func TestPacerPassesErrorsOn(t *testing.T) {
	want := errors.New("etcd rejects it")
	_, err := newPacer(1).intercept(t.Context(), &etcdserverpb.RangeRequest{}, nil, func(context.Context, any) (any, error) { return nil, want })
	if !errors.Is(err, want) {
		t.Errorf("error is %v", err)
	}
}

// TestEtcdPacesLargeWrites connects to a real member, over its Unix socket.
func TestEtcdPacesLargeWrites(t *testing.T) {
	pair, dir := certtest.New(t).Issue(t, "etcd"), t.TempDir()
	socket := filepath.Join(dir, "run", "etcd.sock")
	componenttest.Run(t, (&Etcd{
		Dir: filepath.Join(dir, "etcd"), Socket: socket, ClientAddress: "127.0.0.1:0", PeerAddress: "127.0.0.1:0",
		CertFile: pair.CertFile, KeyFile: pair.KeyFile, CAFile: pair.CertFile,
	}).Run)
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"unix://" + socket}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	put := func(key string, size int) error {
		// Half of a large value becomes free in this time.
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := client.Txn(ctx).Then(clientv3.OpPut(key, strings.Repeat("x", size))).Commit()
		return err
	}
	const large = 1 << 20
	refused := false
	for range 2*ownerBurst/large + 1 {
		err := put("/kubernetes.io/configmaps/evil/flood", large)
		if refused = status.Code(err) == codes.ResourceExhausted; refused {
			break
		}
	}
	if !refused {
		t.Error("large writes of one namespace have no limit")
	}
	for _, key := range []string{"/kubernetes.io/configmaps/evil/small", "/kubernetes.io/configmaps/shop/small"} {
		eventually.True(t, "a small write to "+key, func() bool { return put(key, 100) == nil })
	}
}
