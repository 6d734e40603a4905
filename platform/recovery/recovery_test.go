package recovery

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/slipway-platform/slipway/internal/certtest"
	"github.com/slipway-platform/slipway/internal/componenttest"
	"github.com/slipway-platform/slipway/internal/etcdmember"
	"github.com/slipway-platform/slipway/kube"
)

// newMember returns one of several etcd members, and a function that creates the member's process.
func newMember(t *testing.T) (Etcd, func() *kube.Etcd) {
	t.Helper()
	authority, dir := certtest.New(t), t.TempDir()
	pair := authority.Issue(t, "etcd")
	client, peer := componenttest.UnusedAddress(t), componenttest.UnusedAddress(t)
	e := Etcd{Name: "first", Dir: filepath.Join(dir, "etcd"), PeerURL: "https://" + peer, Several: true, Client: etcdmember.Client{
		Socket: filepath.Join(dir, "etcd.sock"), CertFile: pair.CertFile, KeyFile: pair.KeyFile, CAFile: authority.File,
	}}
	return e, func() *kube.Etcd {
		return &kube.Etcd{
			Dir: e.Dir, Socket: e.Client.Socket, ClientAddress: strings.Replace(client, "127.0.0.1", "127.0.0.2", 1), PeerAddress: peer,
			CertFile: pair.CertFile, KeyFile: pair.KeyFile, CAFile: authority.File, Peers: &kube.EtcdPeers{Name: e.Name, Client: e.Client},
		}
	}
}

// addVoter adds a member that never starts.
func addVoter(t *testing.T, e Etcd) {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"unix://" + e.Client.Socket}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := client.MemberAdd(t.Context(), []string{"https://" + componenttest.UnusedAddress(t)}); err != nil {
		t.Fatal(err)
	}
}

// copyDatabase copies a stopped member's database to a different data directory.
func copyDatabase(t *testing.T, from, to string) {
	t.Helper()
	const database = "member/snap/db"
	content, err := os.ReadFile(filepath.Join(from, database))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(filepath.Join(to, database)), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(to, database), content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// expectError fails the test unless the error contains the text.
func expectError(t *testing.T, err error, text string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("got %v, want an error with %q", err, text)
	}
}

func TestLostReturnsErrorOnOnlyMaster(t *testing.T) {
	_, err := Etcd{}.Lost(t.Context(), true)
	expectError(t, err, "is the only master")
}

func TestLostReturnsErrorWithoutData(t *testing.T) {
	e, _ := newMember(t)
	_, err := e.Lost(t.Context(), true)
	expectError(t, err, "read etcd members")
}

func TestLostReturnsErrorIfMemberResponds(t *testing.T) {
	e, process := newMember(t)
	running := componenttest.Run(t, process().Run)
	_, err := e.Lost(t.Context(), true)
	expectError(t, err, "etcd works")
	addVoter(t, e)
	running.Stop()
	lost, err := e.Lost(t.Context(), false)
	if err != nil || len(lost) != 1 || lost[0].Name != "" {
		t.Errorf("lost members are %+v, error %v", lost, err)
	}
	stranger := e
	stranger.Name = "stranger"
	_, err = stranger.Lost(t.Context(), true)
	expectError(t, err, `no member "stranger"`)
}

func TestRestoreReturnsErrorIfOtherMemberRuns(t *testing.T) {
	e, process := newMember(t)
	running := componenttest.Run(t, process().Run)
	snapshot := filepath.Join(t.TempDir(), "snapshot.db")
	file, err := os.Create(snapshot)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := e.Client.Snapshot(t.Context(), time.Minute, file); err != nil {
		t.Fatal(err)
	}
	running.Stop()

	// This is another master's member. Its data contains the first member.
	other := Etcd{Client: e.Client, Dir: t.TempDir(), Name: "second", PeerURL: "https://" + componenttest.UnusedAddress(t), Several: true}
	copyDatabase(t, e.Dir, other.Dir)
	running = componenttest.Run(t, process().Run)
	_, err = other.Restore(t.Context(), snapshot, false, false)
	expectError(t, err, "etcd still runs on first: stop Slipway there")
	previous, err := other.Restore(t.Context(), snapshot, false, true)
	if err != nil || !strings.HasPrefix(previous, other.Dir) {
		t.Errorf("with force: previous data in %q, error %v", previous, err)
	}
	running.Stop()
	if _, err = other.Restore(t.Context(), snapshot, false, false); err != nil {
		t.Errorf("after the other member has stopped: %v", err)
	}
}

func TestRestoredMemberIsOnlyMember(t *testing.T) {
	e, process := newMember(t)
	running := componenttest.Run(t, process().Run)
	addVoter(t, e)
	running.Stop()
	database := filepath.Join(e.Dir, "member", "snap", "db") // a database file has no hash
	for _, tt := range []struct {
		several bool
		name    string
	}{{true, "second"}, {false, kube.SingleMember}} {
		restored := Etcd{Dir: t.TempDir(), Name: "second", PeerURL: e.PeerURL, Several: tt.several}
		if _, err := restored.Restore(t.Context(), database, false, false); err == nil {
			t.Error("no error for a file without a hash")
		}
		previous, err := restored.Restore(t.Context(), database, true, false)
		if err != nil || previous != "" {
			t.Fatalf("previous data in %q, error %v", previous, err)
		}
		members, err := kube.StoredMembers(restored.Dir)
		if err != nil || len(members) != 1 || members[0].Name != tt.name {
			t.Errorf("several %t: members are %+v, error %v", tt.several, members, err)
		}
	}
}
