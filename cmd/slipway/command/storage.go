package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/platform/host"
)

func storageCommand(opts *options) *cobra.Command {
	storage := &cobra.Command{
		Use: "storage", Short: "Reset the container and image storage", GroupID: "host",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	storage.AddCommand(storageResetCommand(opts))
	return storage
}

// storageResetCommand returns the command that replaces OpenShift 3's Docker storage reset.
//
// Source: OpenShift 3.11 Cluster Administration, 2.12.
func storageResetCommand(opts *options) *cobra.Command {
	var yes bool
	command := &cobra.Command{
		Use:   "reset",
		Short: "Stop this host, and remove all its containers and images",
		Long: "Stop this host with its pods, as `slipway down` does, and remove all containers, images and layers. Objects, volumes\n" +
			"and the images in the registry are kept. The next `slipway up` creates the storage again: pods start with new\n" +
			"containers, and pull their images.\n\n" +
			"Use it if containerd's storage is damaged. To free space, remove images with `oc adm prune images` instead. First,\n" +
			"move the pods to other hosts with `oc adm drain`. You can repeat the command.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, syscall.SIGINT)
			defer stop()
			host, err := opts.load()
			if err != nil {
				return err
			}
			question := fmt.Sprintf("Stop %s, and remove all its containers and images in %s?", host.Node.NodeName, host.Node.Slipway.ContainerdDirectory)
			if err := confirm(cmd.InOrStdin(), cmd.ErrOrStderr(), yes, question); err != nil {
				return fmt.Errorf("reset storage: %w", err)
			}
			return resetStorage(ctx, opts, host, cmd.ErrOrStderr())
		},
	}
	command.Flags().BoolVar(&yes, "yes", false, "do not ask for confirmation")
	return command
}

// resetStorage stops the host and empties containerd's directory. It keeps the directory itself,
// because the directory can be a mount point.
func resetStorage(ctx context.Context, opts *options, h *host.Host, out io.Writer) error {
	if err := down(ctx, opts, false, out); err != nil {
		return fmt.Errorf("reset storage: %w", err)
	}
	dir := h.Node.Slipway.ContainerdDirectory
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("reset storage: %w", err)
	}
	var errs []error
	for _, entry := range entries {
		errs = append(errs, os.RemoveAll(filepath.Join(dir, entry.Name())))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("reset storage: %w", err)
	}
	fmt.Fprintln(out, "All containers and images of this host are removed. To create the storage again: slipway up, or systemctl start slipway")
	return nil
}
