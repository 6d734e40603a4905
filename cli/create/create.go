// Package create implements `oc expose` and the commands below `oc create` that kubectl does not
// have.
package create

import (
	"context"
	"fmt"

	routev1 "github.com/openshift/api/route/v1"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/scheme"

	"github.com/slipway-platform/slipway/cli/objects"
)

// Creation describes a command below `oc create` that creates one object.
type Creation struct {
	Use, Short, Long, Example string
	aliases                   []string
	Args                      cobra.PositionalArgs
	// Resource and Kind identify the object's type. If namespaced is true, the object is created in
	// the current project.
	Resource   schema.GroupVersionResource
	Kind       string
	namespaced bool
	// flags adds flags to the command. Object returns the object that the flags and arguments
	// specify.
	flags  func(*cobra.Command)
	Object func(cmd *cobra.Command, args []string) (map[string]any, error)
}

// Command returns a cobra command that creates the object. The command has the flags -o and
// --dry-run.
func (c Creation) Command(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	print := genericclioptions.NewPrintFlags("created").WithTypeSetter(scheme.Scheme)
	command := &cobra.Command{
		Use: c.Use, Aliases: c.aliases, Short: c.Short, Long: c.Long, Example: c.Example, Args: c.Args, DisableFlagsInUseLine: true,
		Run: func(cmd *cobra.Command, args []string) {
			util.CheckErr(c.run(cmd.Context(), factory, print, streams, cmd, args))
		},
	}
	print.AddFlags(command)
	util.AddDryRunFlag(command)
	if c.flags != nil {
		c.flags(command)
	}
	return command
}

func (c Creation) run(ctx context.Context, factory util.Factory, print *genericclioptions.PrintFlags, streams genericiooptions.IOStreams, cmd *cobra.Command, args []string) error {
	content, err := c.Object(cmd, args)
	if err != nil {
		return err
	}
	object := &unstructured.Unstructured{Object: content}
	object.SetAPIVersion(c.Resource.GroupVersion().String())
	object.SetKind(c.Kind)
	namespace := ""
	if c.namespaced {
		if namespace, _, err = factory.ToRawKubeConfigLoader().Namespace(); err != nil {
			return err
		}
		object.SetNamespace(namespace)
	}
	dryRun, err := util.GetDryRunStrategy(cmd)
	if err != nil {
		return err
	}
	util.PrintFlagsWithDryRunStrategy(print, dryRun)
	printer, err := print.ToPrinter()
	if err != nil {
		return err
	}
	if dryRun != util.DryRunClient {
		client, err := factory.DynamicClient()
		if err != nil {
			return err
		}
		options := metav1.CreateOptions{}
		if dryRun == util.DryRunServer {
			options.DryRun = []string{metav1.DryRunAll}
		}
		if object, err = client.Resource(c.Resource).Namespace(namespace).Create(ctx, object, options); err != nil {
			return err
		}
	}
	if err := printer.PrintObj(object, streams.Out); err != nil || c.Kind != "Route" || dryRun != util.DryRunNone || *print.OutputFormat != "" {
		return err
	}
	route := &routev1.Route{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, route); err != nil {
		return err
	}
	_, err = fmt.Fprintln(streams.ErrOut, objects.RouteURL(route))
	return err
}
