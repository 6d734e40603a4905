package template

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	templatev1 "github.com/openshift/api/template/v1"
	templateclient "github.com/openshift/client-go/template/clientset/versioned/typed/template/v1"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/scheme"

	"github.com/slipway-platform/slipway/cli/describe"
	"github.com/slipway-platform/slipway/cli/objects"
)

// processing holds the state of `oc process`.
type processing struct {
	genericiooptions.IOStreams
	factory          util.Factory
	print            *genericclioptions.PrintFlags
	file             []string
	pairs, files     []string
	labels           string
	list, raw, local bool
	unknown          bool
}

// NewProcess returns the `oc process` command.
func NewProcess(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := &processing{IOStreams: streams, factory: factory, print: genericclioptions.NewPrintFlags("").WithDefaultOutput("json").WithTypeSetter(scheme.Scheme)}
	command := &cobra.Command{
		Use:   "process (TEMPLATE | -f FILENAME) [-p=KEY=VALUE]",
		Short: "Process a template into list of resources",
		Long: `Set the parameters of a template and print the objects, as a list that can be created or applied.

The template is in the project, in another project as PROJECT//NAME, or in a file. Values of parameters come from -p and --param-file,
from the template, or are generated.`,
		Example: `  # Create the objects of a template in a file
  oc process -f template.json | oc create -f -

  # Process a stored template with values for two parameters, and a label for all objects
  oc process foo -p PARM1=VALUE1 -p PARM2=VALUE2 -l app=mine

  # Process a template of another project
  oc process openshift//foo

  # List the parameters of a template
  oc process -f template.json --parameters`,
		Run: func(command *cobra.Command, args []string) {
			formatted := command.Flags().Changed("output")
			if !formatted && *o.print.TemplatePrinterFlags.TemplateArgument != "" {
				*o.print.OutputFormat = "go-template"
			}
			util.CheckErr(o.check(command, args))
			util.CheckErr(o.run(command.Context(), args))
		},
	}
	o.print.AddFlags(command)
	flags := command.Flags()
	flags.Lookup("output").Usage = strings.Replace(flags.Lookup("output").Usage, "(", "(describe, ", 1)
	flags.AddFlag(&pflag.Flag{Name: "t", Shorthand: "t", Value: flags.Lookup("template").Value, Usage: "Short for --template.", Hidden: true})
	objects.AddOldPrintFlags(command)
	flags.StringSliceVarP(&o.file, "filename", "f", nil, "File or URL of the template, or - for standard input.")
	flags.StringArrayVarP(&o.pairs, "param", "p", nil, "Value of a parameter, as KEY=VALUE.")
	flags.StringArrayVar(&o.files, "param-file", nil, "File with parameter values, one KEY=VALUE on each line, or - for standard input.")
	flags.BoolVar(&o.unknown, "ignore-unknown-parameters", false, "Ignore values that are not parameters of the template.")
	flags.StringVarP(&o.labels, "labels", "l", "", "Labels for all objects, as KEY=VALUE,KEY=VALUE.")
	flags.BoolVar(&o.list, "parameters", false, "Print only the template's parameters.")
	flags.BoolVar(&o.raw, "raw", false, "Print the processed template instead of a list of its objects.")
	flags.BoolVar(&o.local, "local", false, "Process the template without the server. Needs --filename.")
	return command
}

// check returns an error if some flags cannot be combined, or if a parameter has several values.
func (o *processing) check(command *cobra.Command, args []string) error {
	flags := command.Flags()
	for _, name := range []string{"param", "labels", "output", "output-version", "raw", "template", "t"} {
		if !o.list || !flags.Changed(name) {
			continue
		}
		if name == "t" {
			name = "template"
		}
		return fmt.Errorf("--parameters flag does not process the template, can't be used with --%s", name)
	}
	count := map[string]int{}
	var twice []string
	for _, pair := range slices.Concat(args, o.pairs) {
		name, _, isPair := strings.Cut(pair, "=")
		if count[name]++; isPair && count[name] == 2 {
			twice = append(twice, name)
		}
	}
	if len(twice) > 0 {
		return fmt.Errorf("the following parameters were provided more than once: %s", strings.Join(twice, ", "))
	}
	objects.WarnOfCommas(o.ErrOut, "--param", o.pairs)
	return nil
}

func (o *processing) run(ctx context.Context, args []string) error {
	name, err := o.arguments(args)
	if err != nil {
		return err
	}
	template, client, namespace, err := o.find(ctx, name)
	if err != nil {
		return err
	}
	if o.list {
		return printParameters(o.Out, template.Parameters)
	}
	values, err := Values("parameter", o.pairs, o.files, o.In, o.ErrOut)
	if err != nil {
		return err
	}
	if err := Fill(template, values, o.unknown); err != nil {
		return err
	}
	set, err := labels.ConvertSelectorToLabelsMap(o.labels)
	if err != nil {
		return fmt.Errorf("error parsing labels: %w", err)
	}
	for key, value := range set {
		if template.ObjectLabels == nil {
			template.ObjectLabels = map[string]string{}
		}
		template.ObjectLabels[key] = value
	}
	result, err := Process(ctx, client, namespace, template)
	if err != nil {
		return err
	}
	return o.show(ctx, result)
}

// arguments returns the template's name. As in earlier OpenShift 3 clients, the arguments can also
// contain parameter values.
func (o *processing) arguments(args []string) (name string, err error) {
	for _, arg := range args {
		switch {
		case strings.Contains(arg, "="):
			o.pairs = append(o.pairs, arg)
		case name != "":
			return "", fmt.Errorf("template name must be specified only once: %s", arg)
		default:
			name = arg
		}
	}
	switch {
	case name == "" && len(o.file) == 0:
		return "", errors.New("Must pass a filename or name of stored template")
	case name != "" && len(o.file) > 0:
		return "", errors.New("pass either a filename or the name of a stored template, not both")
	case o.local && len(o.file) == 0:
		return "", errors.New("--local needs the template's file with --filename")
	case len(o.file) > 1:
		return "", errors.New("pass only one template file")
	}
	return name, nil
}

// find reads the template. If --local is set, client is nil.
func (o *processing) find(ctx context.Context, name string) (template *templatev1.Template, client templateclient.TemplateV1Interface, namespace string, err error) {
	if !o.local {
		config, err := o.factory.ToRESTConfig()
		if err != nil {
			return nil, nil, "", err
		}
		if namespace, _, err = o.factory.ToRawKubeConfigLoader().Namespace(); err != nil {
			return nil, nil, "", err
		}
		if client, err = templateclient.NewForConfig(config); err != nil {
			return nil, nil, "", err
		}
	}
	if name == "" {
		template, err = ReadTemplate(o.factory, o.file[0])
		return template, client, namespace, err
	}
	project, name, err := Locate(name, namespace)
	if err != nil {
		return nil, nil, "", err
	}
	template, err = client.Templates(project).Get(ctx, name, metav1.GetOptions{})
	return template, client, namespace, err
}

// ReadTemplate reads a template from a file or URL.
func ReadTemplate(factory util.Factory, file string) (*templatev1.Template, error) {
	infos, err := factory.NewBuilder().Unstructured().Local().FilenameParam(false, &resource.FilenameOptions{Filenames: []string{file}}).Do().Infos()
	if err != nil {
		return nil, err
	}
	if len(infos) != 1 {
		return nil, fmt.Errorf("read template %q: %d objects, but must be one Template", file, len(infos))
	}
	return From(infos[0].Object.(*unstructured.Unstructured))
}

func (o *processing) show(ctx context.Context, template *templatev1.Template) error {
	template.SetGroupVersionKind(templatev1.GroupVersion.WithKind("Template"))
	if *o.print.OutputFormat == "describe" {
		text, err := describe.Object(ctx, nil, "", template)
		fmt.Fprint(o.Out, text)
		return err
	}
	printer, err := o.print.ToPrinter()
	if err != nil {
		return err
	}
	processedObjects, err := Objects(template)
	if err != nil {
		return err
	}
	if o.raw {
		return printer.PrintObj(template, o.Out)
	}
	all := make([]runtime.Object, len(processedObjects))
	for i, object := range processedObjects {
		all[i] = object
		if *o.print.OutputFormat == "name" {
			if err := printer.PrintObj(object, o.Out); err != nil {
				return err
			}
		}
	}
	if *o.print.OutputFormat == "name" {
		return nil
	}
	return printer.PrintObj(objects.ListOf(all), o.Out)
}

// printParameters prints a table of parameters.
func printParameters(out io.Writer, parameters []templatev1.Parameter) error {
	table := printers.GetNewTabWriter(out)
	fmt.Fprintln(table, "NAME\tDESCRIPTION\tGENERATOR\tVALUE")
	for _, parameter := range parameters {
		value := parameter.Value
		if parameter.Generate != "" && value == "" {
			value = parameter.From
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", parameter.Name, strings.Join(strings.Fields(parameter.Description), " "), parameter.Generate, value)
	}
	return table.Flush()
}
