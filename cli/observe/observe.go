// Package observe implements `oc observe`, which runs a command for every object of a kind and for
// each later change.
//
// The flags, arguments and metrics follow OpenShift 3.11's client.
package observe

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubectl/pkg/cmd/util"
)

// observation holds the state of `oc observe`.
type observation struct {
	genericiooptions.IOStreams
	informer   cache.SharedIndexInformer
	namespaced bool
	templates  []printers.ResourcePrinter
	metrics    *metrics

	each, remove, names          []string // commands to run
	arguments                    []string // templates of the command's arguments
	selector, output             string
	everywhere, strict           bool
	typeVariable, objectVariable string
	maximumErrors                int
	retryCount, retryCode        int
	once, quiet                  bool
	exitAfter, resync            time.Duration
	listenAddress                string
	printMetrics                 bool
	failures                     int
}

// New returns the `oc observe` command.
func New(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := &observation{IOStreams: streams, metrics: newMetrics()}
	command := &cobra.Command{
		Use:   "observe RESOURCE [-- COMMAND...]",
		Short: "Observe changes to resources and react to them",
		Long: `Run a command for every object of a kind, and again after each change.

The arguments of the command are the object's project, if the kind is namespaced, its name, and a value for each --argument. --delete is a command
for deleted objects. --names is a command that lists known names, one on each line. With --names, --delete also runs for objects
that were deleted while oc observe did not run. Without a command, the changes are printed.

Metrics are served at /metrics of --listen-addr. /healthz reports whether all objects were observed once.`,
		Example: `  oc observe services
  oc observe services -a '{ .spec.clusterIP }' -- ./register.sh
  oc observe nodes --names ./known.sh --delete ./forget.sh -- ./add.sh`,
		Run: func(command *cobra.Command, args []string) {
			if at := command.ArgsLenAtDash(); at >= 0 {
				args, o.each = args[:at], args[at:]
			}
			util.CheckErr(o.validate(args))
			util.CheckErr(o.connect(factory, args[0]))
			util.CheckErr(o.run(command.Context()))
		},
	}
	flags := command.Flags()
	flags.BoolVarP(&o.everywhere, "all-namespaces", "A", false, "Observe the objects of all projects.")
	flags.StringVarP(&o.selector, "selector", "l", "", "Selector (label query) to filter on.")
	flags.StringArrayVarP(&o.remove, "delete", "d", nil, "Command for deleted objects. Repeat the flag for each argument of the command.")
	flags.StringArrayVar(&o.names, "names", nil, "Command that lists known names. Repeat the flag for each argument of the command.")
	flags.StringArrayVarP(&o.arguments, "argument", "a", nil, "Template for an argument of the command.")
	flags.StringVar(&o.output, "output", "jsonpath", "Type of the templates: jsonpath or go-template.")
	flags.BoolVar(&o.strict, "strict-templates", false, "Fail if an object lacks a field of a template.")
	flags.StringVar(&o.typeVariable, "type-env-var", "", "Environment variable that contains the type of the change: Sync, Added, Updated or Deleted.")
	flags.StringVar(&o.objectVariable, "object-env-var", "", "Environment variable that contains the object as JSON.")
	flags.IntVar(&o.maximumErrors, "maximum-errors", 20, "Exit after this number of errors. -1: never.")
	flags.IntVar(&o.retryCode, "retry-on-exit-code", 0, "Run the command again if it exits with this code.")
	flags.IntVar(&o.retryCount, "retry-count", 2, "Maximum number of retries.")
	flags.BoolVar(&o.once, "once", false, "Exit when all existing objects were observed once.")
	flags.DurationVar(&o.exitAfter, "exit-after", 0, "Exit after this time.")
	flags.DurationVar(&o.resync, "resync-period", 0, "Run the command for all objects again at this interval.")
	flags.StringVar(&o.listenAddress, "listen-addr", ":11251", "Address on which /metrics and /healthz are served. If empty, they are not served.")
	flags.BoolVar(&o.printMetrics, "print-metrics-on-exit", false, "Write the metrics to standard error at the end.")
	flags.BoolVar(&o.quiet, "no-headers", false, "Do not print changes before the command runs.")
	return command
}

func (o *observation) validate(args []string) error {
	switch {
	case len(args) != 1:
		return errors.New("you must specify at least one argument containing the resource to observe, and a command after --")
	case len(o.names) > 0 && len(o.remove) == 0:
		return errors.New("--delete and --names must both be specified")
	case o.retryCount < 0 || o.resync < 0 || o.exitAfter < 0:
		return errors.New("--retry-count, --resync-period and --exit-after must not be negative")
	}
	if _, err := labels.Parse(o.selector); err != nil {
		return fmt.Errorf("parse --selector: %w", err)
	}
	for _, text := range o.arguments {
		template, err := o.template(text)
		if err != nil {
			return fmt.Errorf("parse --argument %q: %w", text, err)
		}
		o.templates = append(o.templates, template)
	}
	return nil
}

func (o *observation) template(text string) (printers.ResourcePrinter, error) {
	switch {
	case slices.Contains([]string{"go-template", "gotemplate"}, o.output):
		printer, err := printers.NewGoTemplatePrinter([]byte(text))
		if err == nil {
			printer.AllowMissingKeys(!o.strict)
		}
		return printer, err
	case o.output != "jsonpath":
		return nil, fmt.Errorf("--output is %q, must be jsonpath or go-template", o.output)
	}
	printer, err := printers.NewJSONPathPrinter(text)
	if err == nil {
		printer.AllowMissingKeys(!o.strict)
	}
	return printer, err
}

// connect resolves the resource and creates the informer.
func (o *observation) connect(factory util.Factory, name string) error {
	mapper, err := factory.ToRESTMapper()
	if err != nil {
		return err
	}
	resource, err := mapper.ResourceFor(schema.ParseGroupResource(name).WithVersion(""))
	if err != nil {
		return err
	}
	kind, err := mapper.KindFor(resource)
	if err != nil {
		return err
	}
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return err
	}
	client, err := factory.DynamicClient()
	if err != nil {
		return err
	}
	namespace, _, err := factory.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return err
	}
	if o.namespaced = mapping.Scope.Name() == meta.RESTScopeNameNamespace; o.everywhere || !o.namespaced {
		namespace = metav1.NamespaceAll
	}
	o.informer = dynamicinformer.NewFilteredDynamicInformer(client, mapping.Resource, namespace, 0, cache.Indexers{}, func(options *metav1.ListOptions) {
		options.LabelSelector = o.selector
	}).Informer()
	return nil
}

// noValue is the text that a Go template prints for a missing field.
const noValue = "<no value>"

// values returns the arguments that result from the templates for an object. If a template produces
// only noValue, the argument is empty.
func (o *observation) values(object runtime.Object) (all []string, err error) {
	for i, template := range o.templates {
		var text bytes.Buffer
		if err := template.PrintObj(object, &text); err != nil {
			return nil, fmt.Errorf("evaluate argument %q: %w", o.arguments[i], err)
		}
		value := text.String()
		if value == noValue {
			value = ""
		}
		all = append(all, value)
	}
	return all, nil
}
