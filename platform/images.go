package platform

import (
	"fmt"
	"os"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/slipway-platform/slipway/node/image"
)

func imagesCommand(opts *options) *cobra.Command {
	command := &cobra.Command{Use: "images", Short: "List and load container images of this host", GroupID: "look"}
	command.AddCommand(
		&cobra.Command{
			Use:   "load FILE...",
			Short: "Load image archives (docker save or OCI layout; tar, tar.gz, tar.zst)",
			Args:  cobra.MinimumNArgs(1),
			RunE:  func(cmd *cobra.Command, args []string) error { return loadImages(cmd, opts, args) },
		},
		&cobra.Command{
			Use:   "list",
			Short: "List the images that pods can use without a registry",
			Args:  cobra.NoArgs,
			RunE:  func(cmd *cobra.Command, _ []string) error { return listImages(cmd, opts) },
		},
	)
	return command
}

func loadImages(cmd *cobra.Command, opts *options, files []string) error {
	h, err := opts.load()
	if err != nil {
		return err
	}
	store := image.Store{Socket: h.containerdSocket()}
	for _, file := range files {
		began := time.Now()
		names, err := store.LoadArchive(cmd.Context(), file, loadProgress(file, began))
		if err != nil {
			return err
		}
		for _, name := range names {
			fmt.Fprintf(cmd.OutOrStdout(), "%s  (%.1fs)\n", name, time.Since(began).Seconds())
		}
	}
	return nil
}

// loadProgress shows on a terminal how much of an archive has been read.
func loadProgress(file string, began time.Time) image.Progress {
	if !term.IsTerminal(int(os.Stderr.Fd())) {
		return nil
	}
	return func(read, total int64) {
		fmt.Fprintf(os.Stderr, "\r%s  %3d%%  %.1fs", file, 100*read/max(total, 1), time.Since(began).Seconds())
		if read >= total {
			fmt.Fprint(os.Stderr, "\r\x1b[K")
		}
	}
}

func listImages(cmd *cobra.Command, opts *options) error {
	h, err := opts.load()
	if err != nil {
		return err
	}
	images, err := image.Store{Socket: h.containerdSocket()}.List(cmd.Context())
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "IMAGE\tDIGEST\tSIZE")
	for _, one := range images {
		fmt.Fprintf(table, "%s\t%.19s\t%.1f MB\n", one.Name, one.Digest, float64(one.Size)/1e6)
	}
	return table.Flush()
}
