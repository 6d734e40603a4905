package command

import (
	"fmt"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/slipway-platform/slipway/node/image"
)

func imagesCommand(opts *options) *cobra.Command {
	command := &cobra.Command{Use: "images", Short: "List, load and build container images of this host", GroupID: "look"}
	command.AddCommand(
		&cobra.Command{
			Use:   "load FILE...",
			Short: "Load image archives (docker save or OCI layout; tar, tar.gz, tar.zst)",
			Args:  cobra.MinimumNArgs(1),
			RunE:  func(cmd *cobra.Command, args []string) error { return loadImages(cmd, opts, args) },
		},
		buildCommand(opts),
		publishCommand(opts),
		&cobra.Command{
			Use:   "list",
			Short: "List the images that pods can use without a registry",
			Args:  cobra.NoArgs,
			RunE:  func(cmd *cobra.Command, _ []string) error { return listImages(cmd, opts) },
		},
	)
	return command
}

func buildCommand(opts *options) *cobra.Command {
	recipe := image.Recipe{}
	command := &cobra.Command{
		Use:   "build DIRECTORY --tag NAME",
		Short: "Build an image from a Dockerfile that only adds files and settings to another image",
		Long: "Build an image from a Dockerfile that runs no container (FROM, ARG, ENV, ADD, COPY,\n" +
			"LABEL, USER, WORKDIR, EXPOSE, VOLUME, ENTRYPOINT, CMD), on a base image of this host, for the pods of this host. The command pulls no images. Run it on\n" +
			"each host of the cluster: all hosts build the same image.",
		Example: "  slipway images build --tag localhost/loop-driver:1 --build-arg BASE=localhost/slipway-tools:current --file deploy/Dockerfile .",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := opts.load()
			if err != nil {
				return err
			}
			recipe.Context = args[0]
			recipe.Waiting = func(name string) {
				fmt.Fprintf(cmd.ErrOrStderr(), "waiting for image %s, which the node loads after its start\n", name)
			}
			if recipe.File == "" {
				recipe.File = filepath.Join(args[0], "Dockerfile")
			}
			name, err := image.Store{Socket: h.ContainerdSocket()}.Build(cmd.Context(), recipe)
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), name)
			return nil
		},
	}
	command.Flags().StringVarP(&recipe.File, "file", "f", "", "path to the Dockerfile (default: DIRECTORY/Dockerfile)")
	command.Flags().StringVarP(&recipe.Name, "tag", "t", "", "name of the image, such as localhost/name:1")
	command.Flags().StringToStringVar(&recipe.Arguments, "build-arg", nil, "value of an ARG of the Dockerfile, as NAME=value")
	_ = command.MarkFlagRequired("tag")
	return command
}

func loadImages(cmd *cobra.Command, opts *options, files []string) error {
	h, err := opts.load()
	if err != nil {
		return err
	}
	store := image.Store{Socket: h.ContainerdSocket()}
	for _, file := range files {
		start := time.Now()
		names, err := store.LoadArchive(cmd.Context(), file, loadProgress(file, start))
		if err != nil {
			return err
		}
		for _, name := range names {
			fmt.Fprintf(cmd.OutOrStdout(), "%s  (%.1fs)\n", name, time.Since(start).Seconds())
		}
	}
	return nil
}

// loadProgress returns a function that shows how much of an archive has been read. It returns nil
// if standard error is not a terminal.
func loadProgress(file string, start time.Time) image.Progress {
	if !term.IsTerminal(int(os.Stderr.Fd())) {
		return nil
	}
	return func(read, total int64) {
		fmt.Fprintf(os.Stderr, "\r%s  %3d%%  %.1fs", file, 100*read/max(total, 1), time.Since(start).Seconds())
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
	images, err := image.Store{Socket: h.ContainerdSocket()}.List(cmd.Context())
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "IMAGE\tDIGEST\tSIZE")
	for _, i := range images {
		fmt.Fprintf(table, "%s\t%.19s\t%.1f MB\n", i.Name, i.Digest, float64(i.Size)/1e6)
	}
	return table.Flush()
}
