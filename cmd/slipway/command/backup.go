package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/internal/version"
	"github.com/slipway-platform/slipway/platform/backup"
	"github.com/slipway-platform/slipway/platform/host"
	"github.com/slipway-platform/slipway/platform/snapshot"
	"github.com/slipway-platform/slipway/supervisor"
)

func backupCommand(opts *options) *cobra.Command {
	var images bool
	command := &cobra.Command{
		Use:   "backup FILE|DIRECTORY",
		Short: "Save a backup that an empty host can restore to replace this one",
		Long: "Save a backup that an empty host can restore to replace this one. The archive has mode 0600. It contains the configuration, the files\n" +
			"that the configuration names, such as password files, and the certificates and keys. On a master, it also contains a snapshot of\n" +
			"etcd, which must be running. With --images, it also contains the images of the registry. If the argument is a directory, the command\n" +
			"names the file after the host and the time.\n\n" +
			"The archive contains all keys and secrets of the cluster. It does not contain volumes.",
		Example: "  slipway backup /backup\n  slipway backup --images /backup/master.tar.gz",
		GroupID: "host",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := opts.load()
			if err != nil {
				return err
			}
			path, err := saveBackup(cmd, opts, h, args[0], images)
			if err != nil {
				return err
			}
			info, err := os.Stat(path)
			if err != nil {
				return fmt.Errorf("check backup: %w", err)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "Saved %s, %d bytes.\n", path, info.Size())
			return nil
		},
	}
	command.Flags().BoolVar(&images, "images", false, "also save the registry's images")
	return command
}

// archiveName returns an archive's name without its extension. The name consists of prefix, the
// name of the host's node and the time.
func archiveName(prefix string, h *host.Host, now time.Time) string {
	return fmt.Sprintf("%s-%s-%s", prefix, h.Node.NodeName, now.UTC().Format("20060102T150405Z"))
}

// archivePath returns the path of an archive. If path is a directory, the archive has the given
// name in that directory.
func archivePath(path, name string) string {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return filepath.Join(path, name+".tar.gz")
	}
	return path
}

// saveBackup writes a backup and returns its path.
func saveBackup(cmd *cobra.Command, opts *options, h *host.Host, path string, images bool) (string, error) {
	now := time.Now()
	path, err := filepath.Abs(archivePath(path, archiveName("slipway", h, now)))
	if err != nil {
		return "", fmt.Errorf("write backup: %w", err)
	}
	manifest := backup.Manifest{Slipway: version.Slipway(), Node: h.Node.NodeName, Created: now.UTC()}
	replaced := map[string]string{}
	if !h.Joined() {
		if _, err := supervisorStatus(cmd.Context(), h); errors.Is(err, errNotRunning) {
			return "", fmt.Errorf("write backup: %w; the backup contains a snapshot of etcd, which must be running", err)
		}
		client, err := etcdClient(opts)
		if err != nil {
			return "", err
		}
		copied := path + ".etcd"
		defer os.Remove(copied)
		if err := snapshot.Copy(cmd.Context(), snapshotSource(client), copied); err != nil {
			return "", err
		}
		manifest.Snapshot, replaced[h.SnapshotPath()] = filepath.Base(h.SnapshotPath()), copied
	}
	return path, backup.Write(path, manifest, h.DataDir, h.BackupSources(images), replaced)
}

func restoreCommand(opts *options) *cobra.Command {
	return &cobra.Command{
		Use:   "restore FILE",
		Short: "Restore a backup on an empty host",
		Long: "Restore a backup from `slipway backup` on an empty host. The host gets the same certificate authorities, keys, users and\n" +
			"objects. It must have the same name, and the Slipway version of the backup or a newer one. Afterwards, run\n" +
			"`slipway up`. If the command is interrupted, repeat it.",
		GroupID: "host",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			manifest, err := restoreBackup(cmd.Context(), opts, args[0])
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "Restored the host of node %s, as of %s. Start it with: slipway up\n",
				manifest.Node, manifest.Created.Format(time.RFC3339))
			return nil
		},
	}
}

func restoreBackup(ctx context.Context, opts *options, path string) (backup.Manifest, error) {
	if opts.file != "" {
		return backup.Manifest{}, errors.New("restore backup: --config has no effect here; use it with `slipway up`")
	}
	if err := os.MkdirAll(opts.dataDir, 0o700); err != nil {
		return backup.Manifest{}, fmt.Errorf("create data directory: %w", err)
	}
	lock, err := supervisor.Lock(opts.dataDir, filepath.Join(opts.dataDir, "run"))
	if err != nil {
		return backup.Manifest{}, fmt.Errorf("restore backup: %w; stop it with `slipway down`", err)
	}
	defer lock.Close()
	return host.RestoreBackup(ctx, path, opts.dataDir)
}
