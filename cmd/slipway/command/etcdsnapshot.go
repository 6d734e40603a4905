package command

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/internal/etcdmember"
	"github.com/slipway-platform/slipway/platform/snapshot"
)

// snapshotTimeout is the timeout for copying a database.
const snapshotTimeout = 10 * time.Minute

// snapshotCommand returns the command that saves and restores copies of etcd's database.
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
				size, err := snapshot.Check(args[0])
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

// saveSnapshot saves a copy of the database and prints the copy's size.
func saveSnapshot(cmd *cobra.Command, opts *options, path string) error {
	client, err := etcdClient(opts)
	if err != nil {
		return err
	}
	size, err := snapshot.Save(cmd.Context(), snapshotSource(client), path)
	if err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "Saved %s, %d bytes.\n", path, size)
	return nil
}

// snapshotSource returns a source that reads the local member's database.
func snapshotSource(client etcdmember.Client) snapshot.Source {
	return func(ctx context.Context, out io.Writer) error { return client.Snapshot(ctx, snapshotTimeout, out) }
}
