package kube

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/slipway-platform/slipway/internal/certtest"
	"github.com/slipway-platform/slipway/internal/componenttest"
	"github.com/slipway-platform/slipway/internal/etcdmember"
	"github.com/slipway-platform/slipway/internal/eventually"
)

// unusedPort returns a TCP port that is not in use on the loopback interface.
func unusedPort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

// newMember returns a function that creates a component for one member. Call the function again
// each time the member starts.
func newMember(t *testing.T) func(reset bool) *Etcd {
	t.Helper()
	authority := certtest.New(t)
	pair, dir := authority.Issue(t, "etcd", "127.0.0.2"), t.TempDir()
	client, peer := unusedPort(t), unusedPort(t)
	socket := filepath.Join(dir, "run", "etcd.sock")
	return func(reset bool) *Etcd {
		return &Etcd{
			Dir: filepath.Join(dir, "etcd"), Socket: socket,
			// The member also listens on 127.0.0.1, for clients on the same host.
			ClientAddress: fmt.Sprintf("127.0.0.2:%d", client), PeerAddress: fmt.Sprintf("127.0.0.1:%d", peer),
			CertFile: pair.CertFile, KeyFile: pair.KeyFile, CAFile: authority.File,
			Peers: &EtcdPeers{Name: "survivor", Reset: reset, Client: etcdmember.Client{
				Socket: socket, CertFile: pair.CertFile, KeyFile: pair.KeyFile, CAFile: authority.File,
			}},
		}
	}
}

// connectEtcd returns a client that is connected to a member.
func connectEtcd(t *testing.T, e *Etcd) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"unix://" + e.Socket}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

func TestMemberWithoutQuorumStopsAndContinuesAlone(t *testing.T) {
	member := newMember(t)
	first := member(false)
	running := componenttest.Run(t, first.Run)
	client := connectEtcd(t, first)
	if _, err := client.Put(t.Context(), "key", "value"); err != nil {
		t.Fatal(err)
	}
	// A second voting member that never starts makes the cluster lose quorum.
	if _, err := client.MemberAdd(t.Context(), []string{fmt.Sprintf("https://127.0.0.1:%d", unusedPort(t))}); err != nil {
		t.Fatal(err)
	}
	response := make(chan error, 1)
	go func() { _, err := client.Get(context.WithoutCancel(t.Context()), "key"); response <- err }()
	first.Drain() // Drain ends the request, which has no deadline
	if err := <-response; status.Code(err) != codes.FailedPrecondition {
		t.Errorf("a request without a quorum returns %v", err)
	}
	running.Stop()

	second := member(false)
	starting := componenttest.Start(t, second.Run)
	eventually.True(t, "the list of members succeeds without a quorum", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		members, err := PeerMembers(ctx, second.Peers.Client, "https://"+second.PeerAddress)
		return err == nil && len(members) == 2
	})
	starting.Stop()
	if starting.Ready() {
		t.Error("a member without a quorum is ready")
	}

	third, done := member(true), false
	third.Peers.ResetDone = func() error { done = true; return nil }
	componenttest.Run(t, third.Run)
	if members, err := third.Peers.Client.List(t.Context()); err != nil || len(members) != 1 || !done {
		t.Errorf("after the reset, the members are %+v, %v; done is %v", members, err, done)
	}
	got, err := connectEtcd(t, third).Get(t.Context(), "key")
	if err != nil || len(got.Kvs) != 1 || string(got.Kvs[0].Value) != "value" {
		t.Errorf("after the reset, the data is %+v, %v", got, err)
	}
}

func TestResetNeedsMemberWithVote(t *testing.T) {
	members := []etcdmember.Member{{Name: "first"}, {Name: "second", Learner: true}}
	if err := CheckReset(members, "first"); err != nil {
		t.Error(err)
	}
	if err := CheckReset(members, "second"); !errors.Is(err, errNoVote) {
		t.Errorf("reset of a learner: %v", err)
	}
	if err := CheckReset(members, "third"); err == nil {
		t.Error("the reset of a missing member succeeds")
	}
	if err := newMember(t)(true).Run(t.Context(), func() {}); err == nil {
		t.Error("the reset of a member without data succeeds")
	}
}
