package command

import (
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/internal/etcdmember"
)

func TestMemberSettingsContainAllMembers(t *testing.T) {
	got := memberSettings("third", "https://192.0.2.3:2380", []etcdmember.Member{
		{ID: 1, Name: "first", PeerURL: "https://192.0.2.1:2380"},
		{ID: 0xab, PeerURL: "https://192.0.2.2:2380"}, // another member that has not started yet
		{ID: 3, PeerURL: "https://192.0.2.3:2380"},
	})
	want := `ETCD_NAME="third"
ETCD_INITIAL_CLUSTER="first=https://192.0.2.1:2380,ab=https://192.0.2.2:2380,third=https://192.0.2.3:2380"
ETCD_INITIAL_ADVERTISE_PEER_URLS="https://192.0.2.3:2380"
ETCD_INITIAL_CLUSTER_STATE="existing"
`
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestInvalidPeerURLsAreRejected(t *testing.T) {
	for _, text := range []string{"192.0.2.1:2380", "http://192.0.2.1:2380", "https://192.0.2.1", "https://192.0.2.1:2380/x", "https://[::1"} {
		if _, err := peerURL(text); err == nil || !strings.Contains(err.Error(), "https://HOST:PORT") {
			t.Errorf("%s: got %v", text, err)
		}
	}
	if got, err := peerURL("https://[2001:db8::1]:2380"); err != nil || got != "https://[2001:db8::1]:2380" {
		t.Errorf("got %q, %v", got, err)
	}
}
