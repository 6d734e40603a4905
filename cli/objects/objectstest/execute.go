package objectstest

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/util"
)

// fatal is the panic value of a command that fails in a test.
type fatal string

// Fatal makes a command that Execute runs fail with a message. Execute passes it to
// util.BehaviorOnFatal.
func Fatal(message string, _ int) { panic(fatal(message)) }

// Execute runs a command with arguments. It returns the standard output, the standard error, and
// the failure message. Tests that call it cannot run in parallel.
func Execute(t testing.TB, create func(genericiooptions.IOStreams) *cobra.Command, args ...string) (out, errOut, failure string) {
	t.Helper()
	streams, _, stdout, stderr := genericiooptions.NewTestIOStreams()
	command := create(streams)
	command.SetArgs(args)
	command.SetOut(stdout)
	command.SetErr(stderr)
	command.SilenceErrors, command.SilenceUsage = true, true
	util.BehaviorOnFatal(Fatal)
	defer util.DefaultBehaviorOnFatal()
	defer func() {
		switch value := recover().(type) {
		case nil:
		case fatal:
			out, errOut, failure = stdout.String(), stderr.String(), string(value)
		default:
			panic(value)
		}
	}()
	if err := command.ExecuteContext(t.Context()); err != nil {
		failure = err.Error()
	}
	return stdout.String(), stderr.String(), failure
}

// Check runs a command and compares its standard output with want. If failure is not empty, the
// command must fail with a message that contains failure. Check returns the standard error.
func Check(t testing.TB, create func(genericiooptions.IOStreams) *cobra.Command, want, failure string, args ...string) (errOut string) {
	t.Helper()
	out, errOut, message := Execute(t, create, args...)
	switch {
	case failure == "" && message != "" || !strings.Contains(message, failure):
		t.Fatalf("the command failed with %q, want %q", message, failure)
	case failure == "" && out != want:
		t.Errorf("got\n%s\nwant\n%s", out, want)
	}
	return errOut
}
