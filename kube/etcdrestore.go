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

// revisionBump is added to the revision of restored data. As a result, a revision that clients
// received after the snapshot was taken never identifies a different object. etcd's guide for
// Kubernetes clusters recommends this number.
const revisionBump = 1_000_000_000

// restoredFile marks the data directory of a member that has been restored and has not been started
// since then.
const restoredFile = "member/restored"

// EtcdRestore replaces the data directory of a stopped member with a snapshot. The restored member
// is the only member of a new cluster. The previous members cannot join the new cluster with their
// data.
type EtcdRestore struct {
	// Dir is the data directory. It need not exist.
	Dir string
	// Snapshot is the path of the snapshot file. SkipHash accepts a snapshot without a hash, such
	// as a copy of a database file.
	Snapshot string
	SkipHash bool
	// Name and PeerURL are the restored member's name and peer URL.
	Name, PeerURL string
}

// Former returns the directory that contains the replaced data. It exists after Run if there was
// data to replace. Like the staged data, it is in Dir, because Dir can be a separate file system.
func (r EtcdRestore) Former() string { return filepath.Join(r.Dir, "former") }

// Run restores the snapshot. Former keeps the replaced data until a later restore replaces data
// that has been in use. If Run is killed at any point, the member has either the replaced or the
// restored data, and another Run succeeds.
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

// stage creates the restored member's data.
func (r EtcdRestore) stage(dir string) error {
	// Remove the remains of a killed restore.
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
		// Discard the data from the last restore, which was never used. Keep Former, which contains
		// data that was used.
		return errors.Join(exchangeNames(filepath.Join(staged, "member"), member), os.RemoveAll(staged))
	}
	if err := os.RemoveAll(r.Former()); err != nil {
		return err
	}
	// If Run is killed after this step, the previous data is still in place, and Former contains a
	// copy of the snapshot.
	if err := os.Rename(staged, r.Former()); err != nil {
		return err
	}
	return exchangeNames(former, member)
}

// exchangeNames atomically swaps two directories.
func exchangeNames(a, b string) error {
	if err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE); err != nil {
		return fmt.Errorf("exchange %q with %q: %w", a, b, err)
	}
	return nil
}

// syncTree syncs all files and directories below dir to disk.
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
		return fmt.Errorf("record end of restore: %w", err)
	}
	return nil
}
