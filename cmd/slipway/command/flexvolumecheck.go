package command

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/slipway-platform/slipway/internal/atomicfile"
	"github.com/slipway-platform/slipway/storage/flexvolume/conformance"
)

// errNotConformant makes `slipway flexvolume check` end with 1 after it has printed its report.
var errNotConformant = errors.New("the driver does not keep to the interface")

func flexvolumeCheckCommand(opts *options) *cobra.Command {
	var (
		check       conformance.Config
		size, junit string
		secrets     map[string]string
	)
	command := &cobra.Command{
		Use:   "check DRIVER|FILE",
		Short: "Check whether a driver does what the interface asks for",
		Long: "Check an installed driver, or one in a file, against the interface: every documented sequence, each operation twice,\n" +
			"several volumes at the same time, strange option values, operations that it lacks, and calls that are killed half\n" +
			"way. Prints what the driver does right and wrong and what it risks. Ends with 1 if anything is wrong.\n\n" +
			"It needs root and no cluster. Volumes are mounted in a temporary directory, which is removed with all that was made;\n" +
			"what the driver keeps in its storage stays there. Give it options of storage that is there for tests: files are\n" +
			"written into the volumes. In the values of options, {dir} stands for a directory of the check's own, {volume} for\n" +
			"the name of the volume and {size} for its size in bytes.\n\n" +
			"Groups of checks: " + strings.Join(conformance.Groups(), ", ") + ".",
		Example: "  slipway flexvolume check ./loop --options directory={dir},size={size} --size 20Mi\n" +
			"  slipway flexvolume check example.com/loop --only sequence,killed --junit report.xml",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := opts.checkTarget(&check, args[0]); err != nil {
				return err
			}
			quantity, err := resource.ParseQuantity(size)
			if err != nil || quantity.Value() <= 0 {
				return fmt.Errorf("read size %q: it must be a size such as 100Mi", size)
			}
			check.Size, check.Secrets = quantity.Value(), map[string][]byte{}
			for key, value := range secrets {
				check.Secrets[key] = []byte(value)
			}
			if term.IsTerminal(int(os.Stderr.Fd())) {
				check.Done = func(result conformance.Result) { fmt.Fprintf(os.Stderr, "\r\x1b[K%s ...", result.Check) }
				defer fmt.Fprint(os.Stderr, "\r\x1b[K")
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, syscall.SIGINT)
			defer stop()
			report, err := conformance.Run(ctx, check)
			if err != nil {
				return err
			}
			if junit != "" {
				if err := writeJUnit(report, junit); err != nil {
					return err
				}
			}
			if check.Done != nil {
				fmt.Fprint(os.Stderr, "\r\x1b[K")
			}
			if err := report.Print(cmd.OutOrStdout()); err != nil {
				return err
			}
			if report.Count(conformance.Wrong) > 0 {
				return errNotConformant
			}
			return nil
		},
	}
	flags := command.Flags()
	flags.StringVar(&check.Driver, "driver", "", "name of a driver that is given as a file: vendor/name (default: check.example.com/<file name>)")
	flags.StringToStringVar(&check.Options, "options", nil, "options of every volume: key=value,...")
	flags.StringToStringVar(&secrets, "secrets", nil, "keys and values of the volumes' secret: key=value,...")
	flags.StringVar(&check.FSType, "fs-type", "", "file system of the volumes")
	flags.StringVar(&check.Node, "node", "", "name of this machine, as the driver knows it (default: its host name)")
	flags.StringVar(&size, "size", "100Mi", "size of the volumes, which are expanded to twice of it if the driver can")
	flags.DurationVar(&check.Timeout, "timeout", 0, "deadline of each call (default 1m)")
	flags.IntVar(&check.Kills, "kills", 0, "how often each operation is killed (default 10)")
	flags.Uint64Var(&check.Seed, "seed", 0, "seed of the moments at which calls are killed (default: a random one)")
	flags.StringSliceVar(&check.Only, "only", nil, "run these groups of checks only")
	flags.StringVar(&junit, "junit", "", "write the report to this file as well, in JUnit's format")
	return command
}

// checkTarget sets the driver to check. A target is a file if it exists or begins with a dot or
// slash. Otherwise, it is the name of an installed driver.
func (o *options) checkTarget(check *conformance.Config, target string) error {
	info, err := os.Stat(target)
	if err == nil && info.Mode().IsRegular() || strings.HasPrefix(target, "/") || strings.HasPrefix(target, ".") {
		check.File = target
		if check.Driver == "" {
			check.Driver = "check.example.com/" + filepath.Base(target)
		}
		return nil
	}
	if check.Driver != "" {
		return fmt.Errorf("check %q: --driver is for a driver that is given as a file, and there is no such file", target)
	}
	h, err := o.load()
	if err != nil {
		return err
	}
	check.Driver, check.PluginDir = target, h.Node.VolumePluginDir()
	return nil
}

func writeJUnit(report conformance.Report, path string) error {
	var text strings.Builder
	if err := report.JUnit(&text); err != nil {
		return err
	}
	return atomicfile.Write(path, []byte(text.String()), 0o644)
}
