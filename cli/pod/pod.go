// Package pod implements `oc rsh`, `oc exec` and `oc logs`.
package pod

import (
	"cmp"
	"errors"
	"os"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	kubectlexec "k8s.io/kubectl/pkg/cmd/exec"
	"k8s.io/kubectl/pkg/cmd/util"
	complete "k8s.io/kubectl/pkg/util/completion"
	"k8s.io/kubectl/pkg/util/term"
)

// defaultShell is the default of --shell. Nearly every image contains this shell.
const defaultShell = "/bin/sh"

// shell holds the state of `oc rsh`.
type shell struct {
	program      string
	seconds      int
	force, plain bool // values of --tty and --no-tty
}

// NewRsh returns the `oc rsh` command.
func NewRsh(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	options := &kubectlexec.ExecOptions{StreamOptions: kubectlexec.StreamOptions{IOStreams: streams, Stdin: true}, Executor: &kubectlexec.DefaultRemoteExecutor{}}
	s := &shell{}
	command := &cobra.Command{
		Use:   "rsh [-c CONTAINER] (POD | TYPE/NAME) [COMMAND...]",
		Short: "Start a shell session in a container",
		Long: `Open a shell in a container, or run a command in a terminal there.

TYPE/NAME selects one of the pods of an object. Flags precede the pod. The arguments after the pod are the command.
The command runs in a terminal if oc rsh itself does.`,
		Example: `  oc rsh web-1-x7k2p
  oc rsh -c side dc/web
  oc rsh --shell=/bin/bash web-1-x7k2p
  oc rsh dc/web cat /etc/resolv.conf`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: complete.PodResourceNameCompletionFunc(factory),
		Run: func(command *cobra.Command, args []string) {
			util.CheckErr(s.validate())
			util.CheckErr(options.Complete(factory, command, args[:1], -1))
			options.Command, options.TTY = s.command(args[1:], os.Getenv("TERM")), s.terminal(term.TTY{In: streams.In}.IsTerminalIn())
			options.GetPodTimeout = time.Duration(s.seconds) * time.Second
			util.CheckErr(options.Validate())
			util.CheckErr(options.Run())
		},
	}
	flags := command.Flags()
	flags.SetInterspersed(false)
	// --timeout sets this hidden flag, which kubectl's code uses.
	util.AddPodRunningTimeoutFlag(command, time.Minute)
	util.CheckErr(flags.MarkHidden("pod-running-timeout"))
	util.AddContainerVarFlags(command, &options.ContainerName, "")
	flags.StringVar(&s.program, "shell", defaultShell, "Path of the shell in the container.")
	flags.IntVar(&s.seconds, "timeout", 10, "Seconds to wait for a running pod of TYPE/NAME.")
	flags.BoolVarP(&s.force, "tty", "t", false, "Always use a terminal.")
	flags.BoolVarP(&s.plain, "no-tty", "T", false, "Never use a terminal.")
	return command
}

func (s *shell) validate() error {
	switch {
	case s.force && s.plain:
		return errors.New("use only one of -t and -T")
	case s.seconds <= 0:
		return errors.New("--timeout must be a number of seconds above zero")
	case s.program == "":
		return errors.New("--shell must be the path of a shell")
	}
	return nil
}

// terminal reports whether to allocate a terminal. local reports whether oc rsh itself runs in a
// terminal.
func (s *shell) terminal(local bool) bool {
	return s.force || local && !s.plain
}

// command returns the command to run in the container. If it is the default shell, command also
// sets TERM to the type of the local terminal.
func (s *shell) command(words []string, terminal string) []string {
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	switch {
	case len(words) > 0:
		return words
	case s.program == defaultShell:
		return []string{defaultShell, "-c", `TERM=$1 && export TERM && exec "$0"`, defaultShell, cmp.Or(terminal, "xterm")}
	}
	return []string{s.program}
}
