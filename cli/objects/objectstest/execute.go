package objectstest

import (
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/util"
)

// fatal is the panic of a command that ends with an error.
type fatal string

// Execute runs a command with arguments. It returns the standard output and the standard error, and
// the message with which the command ends if it fails. Tests that call it cannot run in parallel.
func Execute(t testing.TB, create func(genericiooptions.IOStreams) *cobra.Command, args ...string) (out, errOut, failure string) {
	t.Helper()
	streams, _, stdout, stderr := genericiooptions.NewTestIOStreams()
	command := create(streams)
	command.SetArgs(args)
	command.SetOut(stdout)
	command.SetErr(stderr)
	command.SilenceErrors, command.SilenceUsage = true, true
	util.BehaviorOnFatal(func(message string, _ int) { panic(fatal(message)) })
	defer util.DefaultBehaviorOnFatal()
	defer func() {
		if message, ok := recover().(fatal); ok {
			out, errOut, failure = stdout.String(), stderr.String(), string(message)
		}
	}()
	if err := command.ExecuteContext(t.Context()); err != nil {
		failure = err.Error()
	}
	return stdout.String(), stderr.String(), failure
}
