package objects

import (
	"errors"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/scheme"
)

// Output prints objects in the format that -o selects. It also handles the --dry-run flag.
type Output struct {
	// DryRun is the value of --dry-run.
	DryRun bool

	print *genericclioptions.PrintFlags
}

// AddOutput adds OpenShift 3's output format and dry run flags to a command.
func AddOutput(command *cobra.Command) *Output {
	o := &Output{print: genericclioptions.NewPrintFlags("").WithTypeSetter(scheme.Scheme)}
	o.print.AddFlags(command)
	AddOldPrintFlags(command)
	command.Flags().Var(dryRun{&o.DryRun}, "dry-run", "Print the result without changing anything.")
	command.Flags().Lookup("dry-run").NoOptDefVal = "true"
	return o
}

// AddOldPrintFlags adds hidden flags, such as --show-labels, that every OpenShift 3 command with -o
// accepts. It skips flags that the command already defines. The flags have no effect.
func AddOldPrintFlags(command *cobra.Command) {
	flags := command.Flags()
	for _, name := range []string{"no-headers", "show-labels"} {
		if flags.Lookup(name) == nil {
			flags.Bool(name, false, "No effect: the command prints no table.")
			_ = flags.MarkHidden(name)
		}
	}
	if flags.Lookup("show-all") == nil && flags.ShorthandLookup("a") == nil {
		flags.BoolP("show-all", "a", true, "No effect: the command prints all objects.")
		_ = flags.MarkHidden("show-all")
	}
	for name, usage := range map[string]string{
		"sort-by":        "No effect: the command prints no table.",
		"output-version": "No effect: the cluster serves one version.",
	} {
		if flags.Lookup(name) == nil {
			flags.String(name, "", usage)
			_ = flags.MarkHidden(name)
		}
	}
}

// AddPrintFlagsWithoutEffect adds output flags to a command that does not print objects, because
// the command accepted them in OpenShift 3. The flags have no effect.
func AddPrintFlagsWithoutEffect(command *cobra.Command) {
	flags := command.Flags()
	flags.StringP("output", "o", "", "No effect: the command prints no objects.")
	flags.String("template", "", "No effect: the command prints no objects.")
	flags.Bool("allow-missing-template-keys", true, "No effect: the command prints no objects.")
	for _, name := range []string{"output", "template", "allow-missing-template-keys"} {
		_ = flags.MarkHidden(name)
	}
	AddOldPrintFlags(command)
}

// Set reports whether -o is set. If it is, the command only prints objects.
func (o *Output) Set() bool {
	return o.print.OutputFlagSpecified != nil && o.print.OutputFlagSpecified()
}

// Print prints an object in the format that -o selects.
func (o *Output) Print(streams genericiooptions.IOStreams, object runtime.Object) error {
	printer, err := o.print.ToPrinter()
	if err != nil {
		return err
	}
	return printer.PrintObj(object, streams.Out)
}

// Suffix returns the suffix for messages in a dry run. If the command is not a dry run, it returns
// "".
func (o *Output) Suffix() string {
	if o.DryRun {
		return " (dry run)"
	}
	return ""
}

// dryRun is a flag value that accepts the --dry-run values of both OpenShift 3 and kubectl.
type dryRun struct{ value *bool }

// String returns "true" or "false".
func (d dryRun) String() string {
	if d.value == nil || !*d.value {
		return "false"
	}
	return "true"
}

// Set parses the flag's value.
func (d dryRun) Set(text string) error {
	switch text {
	case "true", "client", "server":
		*d.value = true
	case "false", "none":
		*d.value = false
	default:
		return errors.New("must be true or false")
	}
	return nil
}

// Type returns the name of the flag's type for the help text.
func (d dryRun) Type() string { return "bool" }
