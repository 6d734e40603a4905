package kube

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/slipway-platform/slipway/internal/atomicfile"
)

// revisionBump is added to the revision of restored data, so that revisions that clients have seen
// after the snapshot never name other objects. etcd's guide for clusters of Kubernetes recommends
// this number.
const revisionBump = 1_000_000_000

// restoredFile is a file below the data directory of a member that was restored and has not started
// since.
const restoredFile = "member/restored"

// EtcdRestore replaces the data directory of a member that does not run with a snapshot. The
// restored member is the only one of a new cluster, which previous members can't join with their
// data.
type EtcdRestore struct {
	// Dir is the data directory, which need not exist.
	Dir string
	// Snapshot is the file of the snapshot. SkipHash accepts one without a hash, such as a copy of a
	// database file.
	Snapshot string
	SkipHash bool
	// Name and PeerURL are those of the restored member.
	Name, PeerURL string
}

// Former is the directory of the replaced data. It exists after Run if there was data to replace.
// Like the staged data, it is in Dir, which can be a separate file system.
func (r EtcdRestore) Former() string { return filepath.Join(r.Dir, "former") }

// Run restores. Former keeps the replaced data until a later restore replaces data that has been in
// use. After kill -9 at any moment, the member has either the replaced or the restored data, and
// another Run succeeds.
func (r EtcdRestore) Run() error {
	if err := os.MkdirAll(r.Dir, 0o700); err != nil {
		return fmt.Errorf("create etcd directory: %w", err)
	}
	staged := filepath.Join(r.Dir, "restoring")
	if err := r.stage(staged); err != nil {
		return fmt.Errorf("restore snapshot %q: %w", r.Snapshot, err)
	}
	if err := r.exchange(staged); err != nil {
		return fmt.Errorf("replace data of etcd %q: %w", r.Dir, err)
	}
	return atomicfile.SyncFolder(r.Dir)
}

// stage creates the data of the restored member.
func (r EtcdRestore) stage(dir string) error {
	// of a restore that was killed
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	err := snapshot.NewV3(zap.NewNop()).Restore(snapshot.RestoreConfig{
		SnapshotPath: r.Snapshot, SkipHashCheck: r.SkipHash, OutputDataDir: dir,
		Name: r.Name, PeerURLs: []string{r.PeerURL}, InitialCluster: r.Name + "=" + r.PeerURL,
		// A new token creates a new cluster, even if the member keeps its name and address.
		InitialClusterToken: rand.Text(), RevisionBump: revisionBump, MarkCompacted: true,
	})
	if err == nil {
		err = atomicfile.Write(filepath.Join(dir, restoredFile), nil, 0o600)
	}
	if err == nil {
		err = syncTree(dir)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	return nil
}

// exchange atomically replaces the current data, if any, with the staged data.
func (r EtcdRestore) exchange(staged string) error {
	member, former := filepath.Join(r.Dir, "member"), filepath.Join(r.Former(), "member")
	if _, err := os.Stat(member); errors.Is(err, fs.ErrNotExist) {
		return errors.Join(os.Rename(filepath.Join(staged, "member"), member), os.RemoveAll(staged))
	}
	if _, err := os.Stat(filepath.Join(r.Dir, restoredFile)); err == nil {
		// The data of the last restore was never used. Former contains data that was.
		return errors.Join(exchangeNames(filepath.Join(staged, "member"), member), os.RemoveAll(staged))
	}
	if err := os.RemoveAll(r.Former()); err != nil {
		return err
	}
	// A kill after this step leaves the previous data in place, and a copy of the snapshot in
	// Former.
	if err := os.Rename(staged, r.Former()); err != nil {
		return err
	}
	return exchangeNames(former, member)
}

// exchangeNames atomically exchanges two directories.
func exchangeNames(a, b string) error {
	if err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE); err != nil {
		return fmt.Errorf("exchange %q with %q: %w", a, b, err)
	}
	return nil
}

// syncTree writes all files and directories below dir to the disk.
func syncTree(dir string) error {
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return atomicfile.SyncFolder(path)
	})
}

// finishRestore records that the restored data is in use.
func (e *Etcd) finishRestore() error {
	err := os.Remove(filepath.Join(e.Dir, restoredFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("record end of the restore: %w", err)
	}
	return nil
}
