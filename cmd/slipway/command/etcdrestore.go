package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/platform/snapshot"
	"github.com/slipway-platform/slipway/supervisor"
)

// snapshotRestoreCommand returns the command that replaces etcd's data with a snapshot.
func snapshotRestoreCommand(opts *options) *cobra.Command {
	var yes, force, skipHash bool
	command := &cobra.Command{
		Use:   "restore FILE",
		Short: "Replace all objects with the objects of a snapshot, while Slipway is stopped",
		Long: "Replace all objects with the objects of a snapshot. First stop Slipway with `slipway down` or `systemctl stop slipway`. The command\n" +
			"verifies the checksum, and changes the data in one step. The command prints the directory with the previous data.\n\n" +
			"With several masters, stop Slipway on all. The master with the restored data starts a new cluster: the others join it\n" +
			"again as new masters, after `slipway down --purge`.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := opts.loadMaster()
			if err != nil {
				return err
			}
			lock, err := supervisor.Lock(h.DataDir, h.RunDir())
			if err != nil {
				return fmt.Errorf("restore snapshot: %w; stop it with `slipway down`", err)
			}
			defer lock.Close()
			if !skipHash {
				if _, err := snapshot.Check(args[0]); err != nil {
					return fmt.Errorf("check snapshot %q: %w", args[0], err)
				}
			}
			if err := confirm(cmd.InOrStdin(), cmd.ErrOrStderr(), yes, "Replace all objects of the cluster?"); err != nil {
				return fmt.Errorf("restore snapshot: %w", err)
			}
			former, err := h.RestoreEtcd(cmd.Context(), args[0], skipHash, force)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "Restored %s. Start the cluster with: slipway up\n", args[0])
			if former != "" {
				fmt.Fprintf(cmd.OutOrStdout(), "The previous data is in %s; remove it when the cluster works.\n", former)
			}
			return nil
		},
	}
	command.Flags().BoolVar(&yes, "yes", false, "do not ask for confirmation")
	command.Flags().BoolVar(&force, "force", false, "restore even if etcd runs on another master")
	command.Flags().BoolVar(&skipHash, "skip-hash-check", false, "accept a file without a checksum, such as a copy of member/snap/db")
	return command
}
