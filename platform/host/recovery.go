package host

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/slipway-platform/slipway/kube"
	"github.com/slipway-platform/slipway/platform/backup"
	"github.com/slipway-platform/slipway/platform/record"
)

// CheckVersion returns an error if this program must not use the host's data, because a different
// version of Kubernetes wrote the data. The error contains the upgrade path.
func (h *Host) CheckVersion() error {
	if err := h.VersionFile().Check(kube.Version()); err != nil {
		return fmt.Errorf("start host with data directory %q: %w", h.DataDir, err)
	}
	return nil
}

// errRestoring is the error for a host whose files are incomplete because a restore was
// interrupted.
var errRestoring = errors.New("the restore of this host was interrupted: repeat `slipway restore`, or remove everything with `slipway down --purge`")

// restoredSnapshot is the path of the snapshot in a backup, relative to the data directory.
const restoredSnapshot = "restore.db"

// RestoreEtcd replaces etcd's data with a snapshot. The caller must hold the supervisor's lock.
// RestoreEtcd returns the directory that contains the previous data, or "" if there was none. In a
// cluster with several masters, this host is the only member afterwards.
func (h *Host) RestoreEtcd(ctx context.Context, path string, skipHash, force bool) (previous string, err error) {
	own, err := h.ownEtcd()
	if err != nil {
		return "", err
	}
	if previous, err = own.Restore(ctx, path, skipHash, force); err != nil {
		return "", err
	}
	// Remove the recorded version, because the snapshot might contain an earlier version's data.
	if err := h.VersionFile().Remove(); err != nil {
		return "", err
	}
	if h.Cluster == nil {
		return previous, nil
	}
	return previous, h.writeCluster(record.Cluster{Complete: true})
}

// BackupSources returns the files and directories of this host that a backup contains: its
// configuration, certificates and keys, and the files that the configuration refers to. If images
// is set, the registry's images are included.
func (h *Host) BackupSources(images bool) []string {
	sources := []string{h.Path("master"), h.Path("node"), h.PKIDir(), h.AdminKubeconfig(), h.DeveloperPassword()}
	if h.File != "" {
		sources = append(sources, h.File)
	}
	for _, path := range h.Files() {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			sources = append(sources, path)
		}
	}
	if images && !h.UsesRemoteRegistry() {
		sources = append(sources, h.Master.Slipway.Registry.Directory)
	}
	return sources
}

// SnapshotPath returns the path to which a restored backup writes its etcd snapshot.
func (h *Host) SnapshotPath() string { return h.Path(restoredSnapshot) }

// RestoreBackup writes the files in a backup to an empty data directory and restores the etcd
// snapshot. The caller must hold the supervisor's lock.
func RestoreBackup(ctx context.Context, path, dataDir string) (backup.Manifest, error) {
	manifest, err := backup.Read(path)
	if err != nil {
		return manifest, err
	}
	if err := backup.CheckEmpty(dataDir); err != nil {
		return manifest, err
	}
	return manifest, backup.Restore(path, dataDir, func() error {
		if manifest.Snapshot == "" {
			return nil
		}
		h, err := Load(dataDir, "")
		if err != nil {
			return err
		}
		restored := h.Path(restoredSnapshot)
		if _, err := h.RestoreEtcd(ctx, restored, false, true); err != nil {
			return err
		}
		return os.Remove(restored)
	})
}
