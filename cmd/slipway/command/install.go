package command

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/cli"
	"github.com/slipway-platform/slipway/cmd/slipway/installation"
)

func installCommand(opts *options) *cobra.Command {
	return &cobra.Command{
		Use:   "install",
		Short: "Install Slipway as a systemd service, with manual pages and completions",
		Long: "Copy this program to /usr/local/bin, with the link oc, and install a systemd service that starts the cluster when the machine boots.\n" +
			"Also install manual pages, and completions for bash and zsh. Nothing starts yet: `slipway up` starts the service.\n\n" +
			"`slipway uninstall` and `slipway down --purge` remove everything that this command installed. To upgrade, run it again with the new\n" +
			"program.",
		GroupID: "host",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if os.Geteuid() != 0 {
				return errNotRoot
			}
			return install(cmd.Context(), opts, cmd.Root(), cmd.OutOrStdout())
		},
	}
}

// installationRequest returns the request to install this program.
func installationRequest(opts *options, root *cobra.Command) (installation.Request, error) {
	program, err := os.Executable()
	if err != nil {
		return installation.Request{}, fmt.Errorf("find this program: %w", err)
	}
	request := installation.Request{Program: program, Commands: map[string]*cobra.Command{"slipway": root, "oc": cli.Tree("oc")}}
	if request.DataDir, err = filepath.Abs(opts.dataDir); err != nil {
		return installation.Request{}, fmt.Errorf("find data directory: %w", err)
	}
	return request, nil
}

func install(ctx context.Context, opts *options, root *cobra.Command, out io.Writer) error {
	request, err := installationRequest(opts, root)
	if err != nil {
		return err
	}
	if opts.file != "" {
		if request.Config, err = filepath.Abs(opts.file); err != nil {
			return fmt.Errorf("find configuration file: %w", err)
		}
	}
	files, err := installation.Host().Install(ctx, request)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "Installed %d files and the systemd service %s. Start it with: slipway up\n", len(files), installation.Service)
	return err
}

func uninstallCommand(opts *options) *cobra.Command {
	return &cobra.Command{
		Use:   "uninstall",
		Short: "Stop everything, and remove the installation of slipway install",
		Long: "Stop the cluster and its pods as `slipway down` does, and remove the service, the program, manual pages and completions that `slipway install`\n" +
			"installed. The data remains. To remove the data as well, use `slipway down --purge`.",
		GroupID: "host",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if os.Geteuid() != 0 {
				return errNotRoot
			}
			if err := down(cmd.Context(), opts, false, os.Stderr); err != nil {
				return err
			}
			removed, err := installation.Host().Remove(cmd.Context(), opts.dataDir)
			if err == nil && !removed {
				fmt.Fprintf(os.Stderr, "No service is installed for %s.\n", opts.dataDir)
			}
			return err
		},
	}
}
