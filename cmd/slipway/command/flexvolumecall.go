package command

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/storage/flexvolume"
)

// errCallFailed makes `slipway flexvolume call` exit with status 1 after it has printed the result.
var errCallFailed = errors.New("the call did not succeed")

// jsonArgument returns the index of the JSON object in an operation's arguments, and the number of
// arguments. ok is false if the operation has no JSON argument.
func jsonArgument(op flexvolume.Operation) (index, count int, ok bool) {
	switch op {
	case flexvolume.OpGetVolumeName:
		return 0, 1, true
	case flexvolume.OpAttach, flexvolume.OpIsAttached:
		return 0, 2, true
	case flexvolume.OpWaitForAttach, flexvolume.OpMount:
		return 1, 2, true
	case flexvolume.OpMountDevice:
		return 2, 3, true
	case flexvolume.OpExpandVolume:
		return 0, 4, true
	case flexvolume.OpExpandFS:
		return 0, 5, true
	}
	return 0, 0, false
}

// volumeFlags describes a volume. If the user omits the JSON argument, it is created from these
// flags.
type volumeFlags struct {
	name, fsType string
	readOnly     bool
	options      map[string]string
}

func flexvolumeCallCommand(opts *options) *cobra.Command {
	var volume volumeFlags
	var timeout time.Duration
	command := &cobra.Command{
		Use:   "call DRIVER OPERATION [ARGUMENT...]",
		Short: "Call an installed driver once, as a node does, and print the result",
		Long: "Call an installed driver once, with the operation's deadline, and print its arguments, its output and how the\n" +
			"node interprets it, without secrets. The exit code is 0 if the node treats the call as successful, otherwise 1.\n\n" +
			"Arguments are passed unchanged. A missing JSON object is created from --volume, --options,\n" +
			"--fs-type and --read-only. For mount, it contains a pod named \"call\".",
		Example: "  slipway flexvolume call example.com/loop init\n" +
			"  slipway flexvolume call example.com/loop attach node1 --volume pv1 --options size=20Mi\n" +
			"  slipway flexvolume call example.com/loop unmount /mnt",
		Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := opts.load()
			if err != nil {
				return err
			}
			installed, err := flexvolume.Find(h.Node.VolumePluginDir(), args[0])
			if err != nil {
				return err
			}
			op := flexvolume.Operation(args[1])
			callArgs, err := volume.complete(op, args[2:])
			if err != nil {
				return err
			}
			settings := h.DriverSettings(installed.Driver)
			if timeout > 0 {
				settings.Timeouts = map[flexvolume.Operation]time.Duration{op: timeout}
			}
			driver := flexvolume.NewDriver(installed.Driver, installed.Path, settings)
			outcome := driver.Try(cmd.Context(), flexvolume.Trial{Operation: op, Args: callArgs})
			printOutcome(cmd.OutOrStdout(), installed, outcome)
			if outcome.Err != nil {
				return errCallFailed
			}
			return nil
		},
	}
	flags := command.Flags()
	flags.StringVar(&volume.name, "volume", "call", "name of the volume in an omitted JSON object")
	flags.StringToStringVar(&volume.options, "options", nil, "options of the volume: key=value,...")
	flags.StringVar(&volume.fsType, "fs-type", "", "file system of the volume")
	flags.BoolVar(&volume.readOnly, "read-only", false, "make the volume read-only")
	flags.DurationVar(&timeout, "timeout", 0, "deadline of the call, instead of the operation's deadline")
	return command
}

// complete adds the JSON object to the arguments if no other argument is missing.
func (v volumeFlags) complete(op flexvolume.Operation, args []string) ([]string, error) {
	index, count, ok := jsonArgument(op)
	if !ok || len(args) != count-1 {
		return args, nil
	}
	volume := flexvolume.Volume{Name: v.name, FSType: v.fsType, ReadOnly: v.readOnly, Options: v.options}
	input, err := volume.Input()
	if op == flexvolume.OpMount {
		pod := flexvolume.Pod{Name: "call", Namespace: "default", UID: "00000000-0000-0000-0000-000000000000", ServiceAccount: "default"}
		input, err = flexvolume.MountRequest{Volume: volume, Pod: pod}.Input()
	}
	if err != nil {
		return nil, err
	}
	return slices.Insert(slices.Clone(args), index, input), nil
}

// printOutcome prints a call, the call's output, and Slipway's interpretation of it.
func printOutcome(out io.Writer, installed flexvolume.Installation, outcome flexvolume.TrialResult) {
	fmt.Fprintf(out, "driver    %s, version %.12s\n", installed.Driver, installed.Version)
	fmt.Fprintf(out, "command   %s", installed.Path)
	for _, arg := range slices.Concat([]string{string(outcome.Operation)}, outcome.Args) {
		fmt.Fprintf(out, " %s", shellQuote(arg))
	}
	fmt.Fprintf(out, "\nduration  %s\n", outcome.Duration.Round(100*time.Microsecond))
	fmt.Fprintf(out, "exit code %d\n", outcome.ExitCode)
	fmt.Fprintf(out, "stdout    %s\n", indent(outcome.Stdout))
	fmt.Fprintf(out, "stderr    %s\n", indent(outcome.Stderr))
	fmt.Fprintf(out, "taken as  %s\n", takenAs(outcome))
}

// takenAs returns Slipway's interpretation of a call's result.
func takenAs(outcome flexvolume.TrialResult) string {
	switch {
	case errors.Is(outcome.Err, flexvolume.ErrNotSupported):
		return "not supported: Slipway does not need the operation, or performs it itself"
	case outcome.Err != nil:
		return "error: " + outcome.Err.Error()
	}
	text := "success"
	switch outcome.Operation {
	case flexvolume.OpInit:
		text += ", capabilities " + outcome.Capabilities.String()
	case flexvolume.OpGetVolumeName:
		text += fmt.Sprintf(", volume name %q", outcome.VolumeName)
	case flexvolume.OpAttach, flexvolume.OpWaitForAttach:
		text += fmt.Sprintf(", device %q", outcome.Device)
	case flexvolume.OpIsAttached:
		text += fmt.Sprintf(", attached: %t", outcome.Attached)
	case flexvolume.OpExpandVolume:
		text += fmt.Sprintf(", new size %d bytes", outcome.VolumeNewSize)
	}
	return text
}

// shellQuote quotes an argument for a shell if necessary.
func shellQuote(arg string) string {
	if arg != "" && !strings.ContainsFunc(arg, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./~:=,@%+", r)
	}) {
		return arg
	}
	return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
}

// indent aligns the second and later lines of a driver's output with the first line.
func indent(text string) string {
	return strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n          ")
}
