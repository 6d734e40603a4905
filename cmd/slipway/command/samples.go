package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/bootstrap/samples"
	"github.com/slipway-platform/slipway/node/image"
	"github.com/slipway-platform/slipway/platform/host"
)

func samplesCommand(opts *options) *cobra.Command {
	command := &cobra.Command{Use: "samples", Short: "Create the images that the templates of the project openshift need", GroupID: "host"}
	command.AddCommand(
		&cobra.Command{
			Use:   "list",
			Short: "List the images that can be created, and whether they exist",
			Args:  cobra.NoArgs,
			RunE:  func(cmd *cobra.Command, _ []string) error { return listSamples(cmd, opts) },
		},
		samplesBuildCommand(opts),
		samplesDownloadCommand(),
	)
	return command
}

func samplesBuildCommand(opts *options) *cobra.Command {
	var from, mirror string
	background := false
	command := &cobra.Command{
		Use:   "build [NAME...]",
		Short: "Create images from Debian's packages and publish them in the project openshift",
		Long: "Create images from Debian's packages and publish them in the project openshift. Without names, the command\n" +
			"creates all images. It needs root, the program mmdebstrap, and a Debian mirror, unless --from names a directory\n" +
			"of `slipway samples download`. If an image cannot be created, the command continues with the next image, and ends\n" +
			"with an error.",
		Example: "  slipway samples build postgresql nodejs\n" +
			"  slipway samples build --mirror http://mirror.example.com/debian\n" +
			"  slipway samples build --from /mnt/samples --background",
		RunE: func(cmd *cobra.Command, names []string) error {
			h, err := opts.loadMaster()
			if err != nil {
				return err
			}
			selected, err := selectSamples(names)
			if err != nil {
				return err
			}
			if background {
				return buildInBackground(cmd, h, opts, names, from, mirror)
			}
			return eachSample(cmd.Context(), cmd.OutOrStdout(), selected, func(s *samples.Image, step stepper) error {
				end, err := attemptsOf(h).begin(s.Name)
				if err != nil {
					return err
				}
				return end(buildSample(cmd.Context(), h, s, from, mirror, step))
			})
		},
	}
	command.Flags().BoolVar(&background, "background", false, "return immediately; to see the progress, run slipway samples list")
	command.Flags().StringVar(&from, "from", "", "directory with the packages that slipway samples download wrote")
	command.Flags().StringVar(&mirror, "mirror", "", "Debian mirror: a URL, or a line of sources.list")
	command.MarkFlagsMutuallyExclusive("from", "mirror")
	return command
}

func samplesDownloadCommand() *cobra.Command {
	var to, mirror string
	command := &cobra.Command{
		Use:   "download [NAME...] --to DIRECTORY",
		Short: "Download the packages of images, to build the images on a machine without a network",
		Long: "Download the packages of images into a directory, from which slipway samples build --from creates them on another\n" +
			"machine. The command needs root and the program mmdebstrap, and no cluster.",
		Example: "  slipway samples download --to /mnt/samples",
		RunE: func(cmd *cobra.Command, names []string) error {
			selected, err := selectSamples(names)
			if err == nil {
				err = os.MkdirAll(to, 0o755)
			}
			if err != nil {
				return err
			}
			return eachSample(cmd.Context(), cmd.OutOrStdout(), selected, func(s *samples.Image, step stepper) error {
				if s.Base != "" {
					return nil
				}
				return step("download packages", func() error { return s.Unpack(cmd.Context(), archiveOf(to, s), mirror) })
			})
		},
	}
	command.Flags().StringVar(&to, "to", "", "directory for the packages")
	command.Flags().StringVar(&mirror, "mirror", "", "Debian mirror: a URL, or a line of sources.list")
	_ = command.MarkFlagRequired("to")
	return command
}

// archiveOf returns the path of the file that contains a sample's packages.
func archiveOf(dir string, s *samples.Image) string { return filepath.Join(dir, s.Name+".tar") }

// stepper runs a step. It prints the step's name and duration.
type stepper func(name string, run func() error) error

// selectSamples returns the samples with the given names, or all samples if no names are given. It
// returns errNotRoot if the user is not root, because only root can create samples.
func selectSamples(names []string) ([]*samples.Image, error) {
	if os.Geteuid() != 0 {
		return nil, errNotRoot
	}
	return samples.Select(names)
}

// buildInBackground starts this command in a new session, without the flag --background.
func buildInBackground(cmd *cobra.Command, h *host.Host, opts *options, names []string, from, mirror string) error {
	args := append([]string{"samples", "build"}, names...)
	if from != "" {
		from, err := filepath.Abs(from)
		if err != nil {
			return err
		}
		args = append(args, "--from", from)
	}
	if mirror != "" {
		args = append(args, "--mirror", mirror)
	}
	log := h.LogFile("samples")
	if _, err := detach(h, opts, log, args...); err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "The images are being created in the background. To see their states, run: slipway samples list. Log: %s\n", log)
	return nil
}

// eachSample calls do for each sample, with a stepper that prints the progress. If do fails for a
// sample, eachSample continues with the next sample, and returns all errors at the end.
func eachSample(ctx context.Context, out io.Writer, selected []*samples.Image, do func(*samples.Image, stepper) error) error {
	start := time.Now()
	var errs []error
	for i, s := range selected {
		step := func(name string, run func() error) error {
			fmt.Fprintf(out, "[%d/%d] %s:%s  %s ...", i+1, len(selected), s.Name, s.Version, name)
			stepStart := time.Now()
			err := run()
			fmt.Fprintf(out, " %.1fs (%.0fs in total)\n", time.Since(stepStart).Seconds(), time.Since(start).Seconds())
			return err
		}
		if err := do(s, step); err != nil {
			fmt.Fprintf(out, "[%d/%d] %s:%s  failed: %v\n", i+1, len(selected), s.Name, s.Version, err)
			errs = append(errs, fmt.Errorf("image %q: %w", s.Name, err))
		}
		if ctx.Err() != nil {
			break // the user has interrupted the command
		}
	}
	return errors.Join(errs...)
}

// buildSample creates a sample's image and publishes it to its image streams. If from is not empty,
// buildSample uses the packages in this directory instead of downloading them.
func buildSample(ctx context.Context, h *host.Host, s *samples.Image, from, mirror string, step stepper) error {
	work, err := os.MkdirTemp(h.DataDir, "sample-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	archive := filepath.Join(work, samples.Archive)
	switch {
	case s.Base != "":
	case from == "":
		err = step("download packages", func() error { return s.Unpack(ctx, archive, mirror) })
	default:
		err = step("copy packages", func() error { return copyFile(archiveOf(from, s), archive) })
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%w; to create it, run: slipway samples download", err)
		}
	}
	if err != nil {
		return err
	}
	if s.Compile != "" {
		if err := step("compile", func() error { return s.Compiled(ctx, archive, work) }); err != nil {
			return err
		}
	}
	err = step("create image", func() error {
		if err := s.WriteRecipe(work); err != nil {
			return err
		}
		for _, program := range s.Programs {
			if err := copyProgram(program, filepath.Join(work, "root", "usr", "bin", program)); err != nil {
				return err
			}
		}
		_, err := image.Store{Socket: h.ContainerdSocket()}.Build(ctx, image.Recipe{File: filepath.Join(work, "Dockerfile"), Context: work, Name: s.Reference()})
		return err
	})
	for _, stream := range s.Streams {
		if err == nil {
			to := "openshift/" + stream + ":" + s.Version
			err = step("publish "+to, func() error {
				_, _, err := publish(ctx, h, s.Reference(), to)
				return err
			})
		}
	}
	return err
}

// copyProgram copies a program that is in the same directory as this program, or in PATH.
func copyProgram(name, to string) error {
	own, err := os.Executable()
	if err != nil {
		return err
	}
	from := filepath.Join(filepath.Dir(own), name)
	if _, err := os.Stat(from); err != nil {
		if from, err = exec.LookPath(name); err != nil {
			return fmt.Errorf("find program %q: it is neither in the directory of %s nor in PATH", name, own)
		}
	}
	if err := copyFile(from, to); err != nil {
		return err
	}
	return os.Chmod(to, 0o755)
}

func copyFile(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.Create(to)
	if err != nil {
		return err
	}
	defer target.Close()
	if _, err := io.Copy(target, source); err != nil {
		return err
	}
	return target.Close()
}

// listSamples prints the samples and the states of their images. The states are unknown if the
// cluster does not respond.
func listSamples(cmd *cobra.Command, opts *options) error {
	images, err := samples.Images()
	if err != nil {
		return err
	}
	var states func(*samples.Image) (string, error)
	h, err := opts.loadMaster()
	if err == nil {
		states, err = sampleStates(cmd.Context(), h)
	}
	if err != nil {
		fmt.Fprintf(cmd.ErrOrStderr(), "Cannot read the states of the images: %v\n", err)
		states = func(*samples.Image) (string, error) { return "unknown", nil }
	}
	table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tVERSION\tIMAGE STREAMS\tSTATE")
	for _, i := range images {
		state, err := states(i)
		if err != nil {
			return err
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", i.Name, i.Version, strings.Join(i.Streams, ","), state)
	}
	return table.Flush()
}
