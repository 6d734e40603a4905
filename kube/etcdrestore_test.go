package kube

import (
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/slipway-platform/slipway/internal/componenttest"
)

// value returns the value of a key, or "". The member must be running.
func value(t *testing.T, e *Etcd, key string) string {
	t.Helper()
	got, err := connectEtcd(t, e).Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Kvs) == 0 {
		return ""
	}
	return string(got.Kvs[0].Value)
}

// put writes a value, and saves a snapshot if a path is given.
func put(t *testing.T, e *Etcd, key, value, path string) {
	t.Helper()
	if _, err := connectEtcd(t, e).Put(t.Context(), key, value); err != nil {
		t.Fatal(err)
	}
	if path == "" {
		return
	}
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := e.Peers.Client.Snapshot(t.Context(), time.Minute, file); err != nil {
		t.Fatal(err)
	}
}

func TestSnapshotReplacesDataOfMember(t *testing.T) {
	member, snapshot := newMember(t), filepath.Join(t.TempDir(), "snapshot.db")
	e := member(false)
	running := componenttest.Run(t, e.Run)
	put(t, e, "key", "saved", snapshot)
	put(t, e, "key", "later", "")
	running.Stop()

	restore := EtcdRestore{Dir: e.Dir, Snapshot: snapshot, Name: "survivor", PeerURL: "https://" + e.PeerAddress}
	for range 2 { // the second restore replaces data that was never used
		if err := restore.Run(); err != nil {
			t.Fatal(err)
		}
	}
	e = member(false)
	running = componenttest.Run(t, e.Run)
	if got := value(t, e, "key"); got != "saved" {
		t.Errorf("the restored value is %q", got)
	}
	put(t, e, "key", "after", "")
	running.Stop()

	// The previous data is still usable.
	former := member(false)
	former.Dir = restore.Former()
	running = componenttest.Run(t, former.Run)
	if got := value(t, former, "key"); got != "later" {
		t.Errorf("the previous value is %q", got)
	}
	running.Stop()
}

// TestDatabaseOfStoppedMemberCanBeRestored restores a snapshot like the one that is saved before an
// upgrade: the database file of a stopped member, followed by its hash.
func TestDatabaseOfStoppedMemberCanBeRestored(t *testing.T) {
	member, snapshot := newMember(t), filepath.Join(t.TempDir(), "snapshot.db")
	e := member(false)
	running := componenttest.Run(t, e.Run)
	put(t, e, "key", "saved", "")
	running.Stop()
	content, err := os.ReadFile(filepath.Join(e.Dir, "member", "snap", "db"))
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(content)
	if err := os.WriteFile(snapshot, append(content, sum[:]...), 0o600); err != nil {
		t.Fatal(err)
	}
	e = member(false)
	running = componenttest.Run(t, e.Run)
	put(t, e, "key", "later", "")
	running.Stop()
	restore := EtcdRestore{Dir: e.Dir, Snapshot: snapshot, Name: "survivor", PeerURL: "https://" + e.PeerAddress}
	if err := restore.Run(); err != nil {
		t.Fatal(err)
	}
	e = member(false)
	componenttest.Run(t, e.Run)
	if got := value(t, e, "key"); got != "saved" {
		t.Errorf("the restored value is %q", got)
	}
}

func TestDamagedSnapshotChangesNothing(t *testing.T) {
	member, snapshot := newMember(t), filepath.Join(t.TempDir(), "snapshot.db")
	e := member(false)
	running := componenttest.Run(t, e.Run)
	put(t, e, "key", "saved", snapshot)
	running.Stop()
	content, err := os.ReadFile(snapshot)
	if err != nil {
		t.Fatal(err)
	}
	content[len(content)/2] ^= 1
	if err := os.WriteFile(snapshot, content, 0o600); err != nil {
		t.Fatal(err)
	}
	restore := EtcdRestore{Dir: e.Dir, Snapshot: snapshot, Name: "survivor", PeerURL: "https://" + e.PeerAddress}
	if restore.Run() == nil {
		t.Error("a damaged snapshot is restored")
	}
	if entries, err := os.ReadDir(e.Dir); err != nil || len(entries) != 1 {
		t.Errorf("the data directory contains %v, %v", entries, err)
	}
	if _, err := os.Stat(restore.Former()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("former data: %v", err)
	}
}

// TestKilledRestoreLeavesOldOrNewData interrupts a restore before and after each of its steps.
func TestKilledRestoreLeavesOldOrNewData(t *testing.T) {
	member, snapshot := newMember(t), filepath.Join(t.TempDir(), "snapshot.db")
	e := member(false)
	running := componenttest.Run(t, e.Run)
	put(t, e, "key", "saved", snapshot)
	put(t, e, "key", "later", "")
	running.Stop()
	restore := EtcdRestore{Dir: e.Dir, Snapshot: snapshot, Name: "survivor", PeerURL: "https://" + e.PeerAddress}
	staged := filepath.Join(e.Dir, "restoring")
	if err := restore.stage(staged); err != nil {
		t.Fatal(err)
	}
	e = member(false)
	running = componenttest.Run(t, e.Run) // simulate a kill after the data was staged
	if got := value(t, e, "key"); got != "later" {
		t.Errorf("the value before the exchange is %q", got)
	}
	running.Stop()
	if err := os.Rename(staged, restore.Former()); err != nil { // simulate a kill before the exchange
		t.Fatal(err)
	}
	if err := restore.Run(); err != nil {
		t.Fatal(err)
	}
	e = member(false)
	running = componenttest.Run(t, e.Run)
	if got := value(t, e, "key"); got != "saved" {
		t.Errorf("the value after the exchange is %q", got)
	}
	running.Stop()
}
