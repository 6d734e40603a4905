package kube

import (
	"strings"
	"testing"

	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
)

func peer(id types.ID, name, url string) membership.Member {
	return membership.Member{
		ID: id, RaftAttributes: membership.RaftAttributes{PeerURLs: []string{url}}, Attributes: membership.Attributes{Name: name},
	}
}

func TestMemberStartsWithCurrentMembers(t *testing.T) {
	members := []membership.Member{
		peer(1, "first", "https://192.0.2.1:7001"),
		peer(2, "", "https://192.0.2.2:7001"),    // this one
		peer(0x10, "", "https://192.0.2.3:7001"), // joins at the same time
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
