package platform

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/distribution/distribution/v3/registry/storage/driver"

	"github.com/slipway-platform/slipway/kube"
	"github.com/slipway-platform/slipway/platform/backup"
	"github.com/slipway-platform/slipway/platform/record"
	"github.com/slipway-platform/slipway/platform/snapshot"
	"github.com/slipway-platform/slipway/registry"
	"github.com/slipway-platform/slipway/supervisor/component"
)

// errRestoring is the error if the host's files are incomplete because a restore was interrupted.
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
	// The snapshot might contain an earlier version's data.
	if err := h.versionFile().Remove(); err != nil {
		return "", err
	}
	if h.cluster == nil {
		return previous, nil
	}
	return previous, h.writeCluster(record.Cluster{Complete: true})
}

// snapshotTimeout is the maximum time to copy etcd's database.
const snapshotTimeout = 10 * time.Minute

// etcdSnapshots returns the component that saves snapshots of etcd's database.
func (h *Host) etcdSnapshots() (component.Component, error) {
	settings := h.Master.Slipway.EtcdSnapshots
	if settings.Disabled {
		return component.Disabled("etcd-snapshots"), nil
	}
	client := h.EtcdMembers()
	var copies *snapshot.Copies
	if file := settings.Configuration; file != "" {
		if _, err := registry.ReadStorage("", file, false); err != nil {
			return nil, fmt.Errorf("read slipway.etcdSnapshots.configuration: %w", err)
		}
		copies = &snapshot.Copies{
			Dir:  "/etcd-snapshots/" + h.Node.NodeName,
			Open: func(ctx context.Context) (driver.StorageDriver, error) { return registry.OpenStorage(ctx, file) },
		}
	}
	return &snapshot.Schedule{
		Copies: copies,
		Source: func(ctx context.Context, out io.Writer) error { return client.Snapshot(ctx, snapshotTimeout, out) },
		Dir:    settings.Directory, Interval: settings.Interval.Duration, Keep: settings.Keep,
	}, nil
}

// saveBeforeUpgrade saves etcd's data if a different version of the program wrote it, so that an
// administrator can return to that version. If the data cannot be saved, for example because the
// disk is full, the upgrade continues.
func (h *Host) saveBeforeUpgrade(ctx context.Context) {
	settings, former := h.Master.Slipway.EtcdSnapshots, h.versionFile().Former(kube.Version())
	if settings.Disabled || former == "" {
		return
	}
	path, err := snapshot.BeforeUpgrade(ctx, filepath.Join(h.Master.EtcdDirectory(), "member", "snap", "db"), settings.Directory, former)
	if err != nil {
		slog.Warn("cannot save the data before the upgrade", "from", former, "to", kube.Version(), "error", err)
		return
	}
	slog.Info("saved the data before the upgrade", "from", former, "to", kube.Version(), "path", path)
}

// BackupSources returns the files and directories of this host that a backup contains: its
// configuration, certificates and keys, and the files that the configuration refers to. If images
// is set, the registry's images are included.
func (h *Host) BackupSources(images bool) []string {
	sources := []string{h.path("master"), h.path("node"), h.PKIDir(), h.AdminKubeconfig(), h.DeveloperPassword()}
	if h.file != "" {
		sources = append(sources, h.file)
	}
	for _, path := range h.Files() {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			sources = append(sources, path)
		}
	}
	if images && !h.usesRemoteRegistry() {
		sources = append(sources, h.Master.Slipway.Registry.Directory)
	}
	return sources
}

// SnapshotPath returns the path of the etcd snapshot in a backup of this host.
func (h *Host) SnapshotPath() string { return h.path(restoredSnapshot) }

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
		restored := h.path(restoredSnapshot)
		if _, err := h.RestoreEtcd(ctx, restored, false, true); err != nil {
			return err
		}
		return os.Remove(restored)
	})
}
