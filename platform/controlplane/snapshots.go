package controlplane

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/distribution/distribution/v3/registry/storage/driver"

	"github.com/slipway-platform/slipway/kube"
	"github.com/slipway-platform/slipway/platform/snapshot"
	"github.com/slipway-platform/slipway/registry"
	"github.com/slipway-platform/slipway/supervisor/component"
)

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
	settings, former := h.Master.Slipway.EtcdSnapshots, h.VersionFile().Former(kube.Version())
	if settings.Disabled || former == "" {
		return
	}
	path, err := snapshot.BeforeUpgrade(ctx, filepath.Join(h.Master.EtcdDirectory(), "member", "snap", "db"), settings.Directory, former)
	if err != nil {
		slog.Warn("cannot save an etcd snapshot before the upgrade", "from", former, "to", kube.Version(), "error", err)
		return
	}
	slog.Info("saved an etcd snapshot before the upgrade", "from", former, "to", kube.Version(), "path", path)
}
