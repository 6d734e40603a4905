package kube

import (
	"errors"
	"strings"
	"testing"

	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"

	"github.com/slipway-platform/slipway/internal/componenttest"
	"github.com/slipway-platform/slipway/internal/etcdmember"
)

func peer(id types.ID, name, url string) membership.Member {
	return membership.Member{
		ID: id, RaftAttributes: membership.RaftAttributes{PeerURLs: []string{url}}, Attributes: membership.Attributes{Name: name},
	}
}

func TestMemberStartsWithCurrentMembers(t *testing.T) {
	members := []membership.Member{
		peer(1, "first", "https://192.0.2.1:7001"),
		peer(2, "", "https://192.0.2.2:7001"),    // the host itself
		peer(0x10, "", "https://192.0.2.3:7001"), // this host joins at the same time
	}
	got, err := joinMembers(members, "second", "https://192.0.2.2:7001")
	want := "first=https://192.0.2.1:7001,second=https://192.0.2.2:7001,10=https://192.0.2.3:7001"
	if err != nil || got != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	if _, err := joinMembers(members[:1], "second", "https://192.0.2.2:7001"); err == nil || !strings.Contains(err.Error(), "slipway down --purge") {
		t.Errorf("a removed member starts: %v", err)
	}
}

func TestPeerAddressOfMemberCanBeChanged(t *testing.T) {
	e := newMember(t)(false)
	componenttest.Run(t, e.Run)
	client := e.Peers.Client
	members, err := client.AddLearner(t.Context(), "https://192.0.2.2:7001")
	if err != nil {
		t.Fatal(err)
	}
	for _, member := range members {
		if !member.Learner {
			continue
		}
		if err := client.Update(t.Context(), member.ID, "https://192.0.2.3:7001"); err != nil {
			t.Fatal(err)
		}
	}
	members, err = client.List(t.Context())
	if err != nil || len(members) != 2 || members[0].PeerURL != "https://192.0.2.3:7001" {
		t.Errorf("the members are %+v, %v", members, err)
	}
	if err := client.Update(t.Context(), 1, "https://192.0.2.4:7001"); !errors.Is(err, etcdmember.ErrNotFound) {
		t.Errorf("a member that does not exist: %v", err)
	}
}
