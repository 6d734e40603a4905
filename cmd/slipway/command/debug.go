package command

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/internal/profile"
	"github.com/slipway-platform/slipway/platform/host"
)

func debugCommand(opts *options) *cobra.Command {
	command := &cobra.Command{
		Use:     "debug",
		Short:   "Find out where a process spends CPU time and memory",
		GroupID: "look",
	}
	command.AddCommand(debugProfileCommand(opts))
	return command
}

func debugProfileCommand(opts *options) *cobra.Command {
	file, name, duration := "", "heap", 30*time.Second
	command := &cobra.Command{
		Use:   "profile COMPONENT|PROCESS",
		Short: "Save a Go profile of a process",
		Long: "Save a Go profile of a process: its heap, goroutines or CPU time. The components of a process share one profile.\n" +
			"Read the file with `go tool pprof`. Profiles contain names of functions, not data. Only root can read the file.\n\n" +
			"Without -o, the profile is printed as text.",
		Example: "  slipway debug profile control-plane -o /tmp/heap\n" +
			"  slipway debug profile node --type goroutine\n" +
			"  slipway debug profile apiserver --type cpu --duration 10s -o /tmp/cpu",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := opts.load()
			if err != nil {
				return err
			}
			process, err := processOf(h, args[0])
			if err != nil {
				return err
			}
			if process != host.ControlPlane && process != host.Node {
				return fmt.Errorf("save profile of %q: only %s and %s have profiles", process, host.ControlPlane, host.Node)
			}
			request := profile.Request{Name: name, Duration: duration, Text: file == ""}
			if name == profile.CPU && file == "" {
				return fmt.Errorf("save profile of %q: a CPU profile cannot be printed as text; specify a file with -o", process)
			}
			socket := h.ProfileSocket(process)
			if file == "" {
				return profile.Write(cmd.Context(), cmd.OutOrStdout(), socket, request)
			}
			out, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
			if err != nil {
				return err
			}
			return errors.Join(profile.Write(cmd.Context(), out, socket, request), out.Close())
		},
	}
	flags := command.Flags()
	flags.StringVarP(&file, "output", "o", "", "file for the profile")
	flags.StringVar(&name, "type", name, "type of profile: heap, allocs, goroutine, threadcreate or cpu")
	flags.DurationVar(&duration, "duration", duration, "how long to measure CPU time")
	return command
}
