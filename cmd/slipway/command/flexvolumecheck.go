package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/slipway-platform/slipway/internal/atomicfile"
	"github.com/slipway-platform/slipway/storage/flexvolume/conformance"
)

// errNotConformant makes `slipway flexvolume check` exit with status 1 after it has printed the
// report.
var errNotConformant = errors.New("the driver did not pass the check")

// flexvolumeCheck contains the state of `slipway flexvolume check`.
type flexvolumeCheck struct {
	conformance.Config
	size, junit, failOn string
	options             []string
	secrets             map[string]string
}

// failures maps each value of --fail-on to the verdicts that cause exit status 1.
func failures() map[string][]conformance.Verdict {
	return map[string][]conformance.Verdict{
		"wrong": {conformance.Wrong}, "risk": {conformance.Wrong, conformance.Risk}, "never": nil,
	}
}

func flexvolumeCheckCommand(opts *options) *cobra.Command {
	check := &flexvolumeCheck{}
	command := &cobra.Command{
		Use:   "check DRIVER|FILE",
		Short: "Check whether a driver works, and report its risks",
		Long: "Check an installed driver, or a driver in a file. The check calls every documented sequence, repeats operations, uses\n" +
			"several volumes at the same time and unusual option values, calls operations that the driver lacks, and kills calls.\n\n" +
			"The result is one of:\n" +
			"  works                    the driver passes every check\n" +
			"  works, with these risks  pods can use its volumes; the report lists what can go wrong\n" +
			"  does not work            an ordinary pod cannot use its volumes\n\n" +
			"The exit status is 1 if the driver does not work. With --fail-on risk, it is also 1 if there are risks. With\n" +
			"--fail-on never, it is 0 after every complete check.\n\n" +
			"The check requires root and no cluster. It mounts volumes in a temporary directory and removes the directory. The\n" +
			"data that the driver keeps in its storage remains. Use test storage, because the check writes files into the\n" +
			"volumes. In the values of options, {dir} is replaced with a temporary directory, {volume} with the name of the\n" +
			"volume and {size} with its size in bytes. Use --option for a value that contains commas.\n\n" +
			"Groups of checks: " + strings.Join(conformance.Groups(), ", ") + ".",
		Example: "  slipway flexvolume check ./loop --options directory={dir},size={size} --size 20Mi\n" +
			"  slipway flexvolume check ./nfs --option share=server:/export --option mountOptions=ro,vers=4\n" +
			"  slipway flexvolume check example.com/loop --only sequence,killed --junit report.xml --fail-on risk",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := check.complete(opts, args[0]); err != nil {
				return err
			}
			return check.run(cmd.Context(), cmd.OutOrStdout())
		},
	}
	flags := command.Flags()
	flags.StringVar(&check.Driver, "driver", "", "vendor/name for a driver in a file (default: check.example.com/<file name>)")
	flags.StringToStringVar(&check.Options, "options", nil, "options of every volume: key=value,...")
	flags.StringArrayVar(&check.options, "option", nil, "one option of every volume: key=value; the value may contain commas; repeatable")
	flags.StringVar(&check.failOn, "fail-on", "wrong", "lowest result that makes the exit status 1: wrong, risk or never")
	flags.StringToStringVar(&check.secrets, "secrets", nil, "keys and values of the volumes' secret: key=value,...")
	flags.StringVar(&check.FSType, "fs-type", "", "file system of the volumes")
	flags.StringVar(&check.Node, "node", "", "node name to pass to the driver (default: this machine's host name)")
	flags.StringVar(&check.size, "size", "100Mi", "size of the volumes; volumes are expanded to twice the size if the driver supports it")
	flags.DurationVar(&check.Timeout, "timeout", 0, "deadline for each call (default 1m)")
	flags.IntVar(&check.Kills, "kills", 0, "number of times each operation is killed (default 10)")
	flags.Uint64Var(&check.Seed, "seed", 0, "seed for the random times at which calls are killed (default: random)")
	flags.StringSliceVar(&check.Only, "only", nil, "run only these groups of checks")
	flags.StringVar(&check.junit, "junit", "", "also write the report to this file, in JUnit's format")
	return command
}

// complete validates the flags and sets the driver to check. target is a driver name or a file.
func (c *flexvolumeCheck) complete(opts *options, target string) error {
	if _, ok := failures()[c.failOn]; !ok {
		return fmt.Errorf("parse --fail-on %q: must be wrong, risk or never", c.failOn)
	}
	if err := addOptions(&c.Config, c.options); err != nil {
		return err
	}
	if err := opts.checkTarget(&c.Config, target); err != nil {
		return err
	}
	quantity, err := resource.ParseQuantity(c.size)
	if err != nil || quantity.Value() <= 0 {
		return fmt.Errorf("parse --size %q: must be a size such as 100Mi", c.size)
	}
	c.Size, c.Secrets = quantity.Value(), map[string][]byte{}
	for key, value := range c.secrets {
		c.Secrets[key] = []byte(value)
	}
	return nil
}

// run checks the driver and prints the report.
func (c *flexvolumeCheck) run(ctx context.Context, out io.Writer) error {
	report, err := c.check(ctx)
	if err != nil {
		return err
	}
	if c.junit != "" {
		if err := writeJUnit(report, c.junit); err != nil {
			return err
		}
	}
	if err := report.Print(out); err != nil {
		return err
	}
	if slices.Contains(failures()[c.failOn], report.Verdict()) {
		return errNotConformant
	}
	return nil
}

// check runs the checks. On a terminal, it shows the name of the last completed check.
func (c *flexvolumeCheck) check(ctx context.Context) (conformance.Report, error) {
	if term.IsTerminal(int(os.Stderr.Fd())) {
		c.Done = func(result conformance.Result) { fmt.Fprintf(os.Stderr, "\r\x1b[K%s ...", result.Check) }
		defer fmt.Fprint(os.Stderr, "\r\x1b[K")
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	return conformance.Run(ctx, c.Config)
}

// addOptions adds the volume options from --option, which have the form key=value.
func addOptions(check *conformance.Config, options []string) error {
	for _, option := range options {
		key, value, ok := strings.Cut(option, "=")
		if !ok || key == "" {
			return fmt.Errorf("parse --option %q: must be key=value", option)
		}
		if check.Options == nil {
			check.Options = map[string]string{}
		}
		check.Options[key] = value
	}
	return nil
}

// checkTarget sets the driver to check. target is a file if it exists or begins with a dot or a
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
		return fmt.Errorf("check %q: the file does not exist; to check an installed driver, omit --driver", target)
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
