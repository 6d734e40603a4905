package command

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/internal/atomicfile"
	"github.com/slipway-platform/slipway/internal/etcdmember"
)

// snapshotTimeout limits the copy of a database.
const snapshotTimeout = 10 * time.Minute

// snapshotCommand saves and restores copies of etcd's database.
func snapshotCommand(opts *options) *cobra.Command {
	command := &cobra.Command{Use: "snapshot", Short: "Save, check and restore copies of the database"}
	command.AddCommand(
		&cobra.Command{
			Use: "save FILE", Short: "Save a copy of the database of this master's member", Args: cobra.ExactArgs(1),
			Long: "Save a copy of the database of this master's member, with a checksum. It contains all objects. Secrets in it are encrypted with\n" +
				"the keys in pki/encryption.yaml of the data directory: keep a copy of that file, too, in another place.",
			RunE: func(cmd *cobra.Command, args []string) error { return saveSnapshot(cmd, opts, args[0]) },
		},
		&cobra.Command{
			Use: "status FILE", Short: "Check a copy and print its size", Args: cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				size, err := checkSnapshot(args[0])
				if err != nil {
					return fmt.Errorf("check snapshot %q: %w", args[0], err)
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s is complete: %d bytes\n", args[0], size)
				return nil
			},
		},
		snapshotRestoreCommand(opts),
	)
	return command
}

// saveSnapshot writes a copy under a temporary name, checks it, and renames it.
func saveSnapshot(cmd *cobra.Command, opts *options, path string) error {
	client, err := etcdClient(opts)
	if err != nil {
		return err
	}
	if _, err := os.Stat(path); err == nil {
		return fmt.Errorf("save snapshot: %q exists already", path)
	}
	temporary := path + ".partial"
	defer os.Remove(temporary)
	if err := copySnapshot(cmd, client, temporary); err != nil {
		return err
	}
	size, err := checkSnapshot(temporary)
	if err != nil {
		return fmt.Errorf("check snapshot %q: %w", temporary, err)
	}
	if err := os.Rename(temporary, path); err != nil {
		return fmt.Errorf("save snapshot: %w", err)
	}
	if err := atomicfile.SyncFolder(filepath.Dir(path)); err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "Saved %s, %d bytes.\n", path, size)
	return nil
}

func copySnapshot(cmd *cobra.Command, client etcdmember.Client, path string) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("save snapshot: %w", err)
	}
	defer file.Close()
	if err := client.Snapshot(cmd.Context(), snapshotTimeout, file); err != nil {
		return err
	}
	return file.Sync()
}

// errIncompleteSnapshot means that a file does not end with the hash of its content.
var errIncompleteSnapshot = errors.New("it is not complete, or was changed; save another one")

// checkSnapshot compares a copy with the SHA-256 hash that etcd appends to it, and returns its
// size.
func checkSnapshot(path string) (size int64, err error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	// etcd's databases consist of pages of at least 512 bytes.
	if info.Size()%512 != sha256.Size {
		return 0, errIncompleteSnapshot
	}
	hash := sha256.New()
	if _, err := io.CopyN(hash, file, info.Size()-sha256.Size); err != nil {
		return 0, err
	}
	sum, err := io.ReadAll(file)
	if err != nil {
		return 0, err
	}
	if string(sum) != string(hash.Sum(nil)) {
		return 0, errIncompleteSnapshot
	}
	return info.Size(), nil
}
