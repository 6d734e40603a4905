package kube

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sys/unix"

	"github.com/slipway-platform/slipway/internal/certtest"
	"github.com/slipway-platform/slipway/internal/componenttest"
	"github.com/slipway-platform/slipway/internal/etcdmember"
	"github.com/slipway-platform/slipway/internal/eventually"
)

// databaseSize returns the disk space, in bytes, that a member's database file occupies. The file
// itself can be larger: bbolt extends it by 16 MiB before the first write.
func databaseSize(t *testing.T, e *Etcd) int64 {
	t.Helper()
	var info unix.Stat_t
	if err := unix.Stat(filepath.Join(e.Dir, "member", "snap", "db"), &info); err != nil {
		t.Fatal(err)
	}
	const block = 512
	return info.Blocks * block
}

// fill writes keys of 512 KiB and returns the first error.
func fill(t *testing.T, client *clientv3.Client, count int) error {
	t.Helper()
	value := strings.Repeat("x", 512<<10)
	for i := range count {
		if _, err := client.Put(t.Context(), fmt.Sprintf("large/%d", i), value); err != nil {
			return err
		}
	}
	return nil
}

// empty deletes the keys that fill wrote, and their revisions.
func empty(t *testing.T, client *clientv3.Client) {
	t.Helper()
	deleted, err := client.Delete(t.Context(), "large/", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Compact(t.Context(), deleted.Header.Revision, clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}
}

// waitUntilSmall waits until a member's database file is small. Until then, it writes a key as
// often as components renew Leases, because a member reports the space that a compaction frees only
// after the next write.
func waitUntilSmall(t *testing.T, client *clientv3.Client, member *Etcd) {
	t.Helper()
	eventually.True(t, "the file in "+member.Dir+" is small", func() bool {
		_, err := client.Put(t.Context(), "lease", "renewed")
		return err == nil && databaseSize(t, member) < 1<<20
	})
}

// maintainer returns a member's EtcdMaintenance, and a function that returns its note.
func maintainer(e *Etcd, name string) (maintenance *EtcdMaintenance, note func() string) {
	var text atomic.Value
	text.Store("")
	maintenance = &EtcdMaintenance{
		Client: e.Peers.Client, Member: name, Interval: 50 * time.Millisecond, FreeSpace: 4 << 20, quota: e.quota,
	}
	maintenance.Notes(func(problem string) { text.Store(problem) })
	return maintenance, func() string { return text.Load().(string) }
}

func TestFileOfEtcdIsDefragmented(t *testing.T) {
	member := newMember(t)(false)
	componenttest.Run(t, member.Run)
	client := connectEtcd(t, member)
	if err := fill(t, client, 24); err != nil {
		t.Fatal(err)
	}
	maintenance, note := maintainer(member, "")
	running := componenttest.Run(t, maintenance.Run)
	eventually.True(t, "the file contains 12 MiB of objects", func() bool { return databaseSize(t, member) >= 12<<20 })
	empty(t, client)
	waitUntilSmall(t, client, member)
	running.Stop()
	if note() != "" {
		t.Errorf("the note is %q", note())
	}
}

func TestFullEtcdAcceptsWritesAfterDeletions(t *testing.T) {
	member := newMember(t)(false)
	member.quota = 16 << 20
	componenttest.Run(t, member.Run)
	client := connectEtcd(t, member)
	if err := fill(t, client, 1000); !errors.Is(err, rpctypes.ErrNoSpace) {
		t.Fatalf("a full etcd responds with %v", err)
	}
	maintenance, note := maintainer(member, "")
	componenttest.Run(t, maintenance.Run)
	eventually.True(t, "the note names the remedy", func() bool { return strings.Contains(note(), "delete objects") })
	if _, err := client.Put(t.Context(), "key", "value"); !errors.Is(err, rpctypes.ErrNoSpace) {
		t.Errorf("a full etcd responds with %v", err)
	}
	if _, err := client.Delete(t.Context(), "large/", clientv3.WithPrefix()); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "etcd accepts writes", func() bool {
		_, err := client.Put(t.Context(), "key", "value")
		return err == nil
	})
	eventually.True(t, "the note is removed", func() bool { return note() == "" })
}

func TestNoMemberIsDefragmentedDuringItsSnapshot(t *testing.T) {
	member := newMember(t)(false)
	componenttest.Run(t, member.Run)
	client := connectEtcd(t, member)
	if err := fill(t, client, 24); err != nil { // more than a connection can buffer
		t.Fatal(err)
	}
	saving, saved := context.WithCancel(t.Context())
	defer saved()
	stream, err := client.Snapshot(saving)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	url := "https://" + member.ClientAddress
	if err := member.Peers.Client.Defragment(t.Context(), url); err == nil || !strings.Contains(err.Error(), "a snapshot of this member is being saved") {
		t.Errorf("a defragmentation during a snapshot: %v", err)
	}
	saved()
	eventually.True(t, "the member is defragmented after the snapshot", func() bool {
		return member.Peers.Client.Defragment(t.Context(), url) == nil
	})
}

// newMembers starts three voting members.
func newMembers(t *testing.T) []*Etcd {
	t.Helper()
	authority, dir := certtest.New(t), t.TempDir()
	pair := authority.Issue(t, "etcd", "127.0.0.2")
	var members []*Etcd
	for i := range 3 {
		name := fmt.Sprintf("member-%d", i)
		socket := filepath.Join(dir, name, "run", "etcd.sock")
		e := &Etcd{
			Dir: filepath.Join(dir, name, "etcd"), Socket: socket,
			ClientAddress: fmt.Sprintf("127.0.0.2:%d", unusedPort(t)), PeerAddress: fmt.Sprintf("127.0.0.2:%d", unusedPort(t)),
			CertFile: pair.CertFile, KeyFile: pair.KeyFile, CAFile: authority.File,
			Peers: &EtcdPeers{Name: name, Client: etcdmember.Client{
				Socket: socket, CertFile: pair.CertFile, KeyFile: pair.KeyFile, CAFile: authority.File,
			}},
		}
		if i > 0 {
			join(t, members[0], e)
		}
		componenttest.Run(t, e.Run)
		if i > 0 {
			promote(t, members[0], name)
		}
		members = append(members, e)
	}
	return members
}

// join adds a member as a learner.
func join(t *testing.T, first, e *Etcd) {
	t.Helper()
	var all []etcdmember.Member
	eventually.True(t, "all voters are connected, so that "+e.Peers.Name+" can join", func() (joined bool) {
		added, err := first.Peers.Client.AddLearner(t.Context(), "https://"+e.PeerAddress)
		all = added
		return err == nil
	})
	var cluster []string
	for _, member := range all {
		name := member.Name
		if name == "" {
			name = e.Peers.Name
		}
		cluster = append(cluster, name+"="+member.PeerURL)
	}
	e.Peers.Cluster = strings.Join(cluster, ",")
}

// promote promotes a learner to a voter once the learner has caught up.
func promote(t *testing.T, first *Etcd, name string) {
	t.Helper()
	eventually.True(t, name+" has a vote", func() bool {
		all, err := first.Peers.Client.List(t.Context())
		if err != nil {
			return false
		}
		for _, member := range all {
			if member.Name == name && member.Learner {
				return first.Peers.Client.Promote(t.Context(), member.ID) == nil
			}
		}
		return false
	})
}

func TestFilesOfAllMembersShrinkAndLeaderIsLast(t *testing.T) {
	members := newMembers(t)
	client := connectEtcd(t, members[0])
	if err := fill(t, client, 24); err != nil {
		t.Fatal(err)
	}
	empty(t, client)
	before, err := members[0].Peers.Client.States(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, member := range members {
		maintenance, _ := maintainer(member, member.Peers.Name)
		componenttest.Run(t, maintenance.Run)
	}
	for _, member := range members {
		waitUntilSmall(t, client, member)
	}
	after, err := members[0].Peers.Client.States(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if before[0].Leader == after[0].Leader {
		t.Error("the leader kept the leadership until its file was defragmented")
	}
}
