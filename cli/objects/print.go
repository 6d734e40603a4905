package objects

import (
	"errors"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/scheme"
)

// Output prints objects in the format of the flag -o, and marks dry runs.
type Output struct {
	// DryRun is the flag --dry-run.
	DryRun bool

	print *genericclioptions.PrintFlags
}

// AddOutput adds the flags of OpenShift 3 for formats and dry runs to a command.
func AddOutput(command *cobra.Command) *Output {
	o := &Output{print: genericclioptions.NewPrintFlags("").WithTypeSetter(scheme.Scheme)}
	o.print.AddFlags(command)
	AddOldPrintFlags(command)
	command.Flags().Var(dryRun{&o.DryRun}, "dry-run", "Print the result only, and change nothing.")
	command.Flags().Lookup("dry-run").NoOptDefVal = "true"
	return o
}

// AddOldPrintFlags adds the flags that every printing command of OpenShift 3 accepts. They concern
// tables, which the command doesn't print, so they have no effect, as in OpenShift 3.
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

// AddPrintFlagsWithoutEffect adds the flags for formats to a command that prints no objects,
// because OpenShift 3 accepts them there.
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

// Set reports whether the user chose a format. Then the command prints objects and changes nothing.
func (o *Output) Set() bool {
	return o.print.OutputFlagSpecified != nil && o.print.OutputFlagSpecified()
}

// Print prints an object in the chosen format.
func (o *Output) Print(streams genericiooptions.IOStreams, object runtime.Object) error {
	printer, err := o.print.ToPrinter()
	if err != nil {
		return err
	}
	return printer.PrintObj(object, streams.Out)
}

// Suffix is what the message about a dry run ends with.
func (o *Output) Suffix() string {
	if o.DryRun {
		return " (dry run)"
	}
	return ""
}

// dryRun accepts the values of OpenShift 3's flag and of kubectl's.
type dryRun struct{ value *bool }

// String returns the value.
func (d dryRun) String() string {
	if d.value == nil || !*d.value {
		return "false"
	}
	return "true"
}

// Set reads a value.
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

// Type is the name of the flag's type in help texts.
func (d dryRun) Type() string { return "bool" }
