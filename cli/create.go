package cli

import (
	"context"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/scheme"
)

// creation is a command below `oc create` that makes one object.
type creation struct {
	use, short, long, example string
	aliases                   []string
	args                      cobra.PositionalArgs
	// resource is where the object is made, of the current project where it is namespaced, and kind the object's.
	resource   schema.GroupVersionResource
	kind       string
	namespaced bool
	// flags adds flags; object makes the object of the arguments.
	flags  func(*cobra.Command)
	object func(cmd *cobra.Command, args []string) (map[string]any, error)
}

// command is the cobra command of a creation, with `-o` and `--dry-run`.
func (c creation) command(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	print := genericclioptions.NewPrintFlags("created").WithTypeSetter(scheme.Scheme)
	command := &cobra.Command{
		Use: c.use, Aliases: c.aliases, Short: c.short, Long: c.long, Example: c.example, Args: c.args, DisableFlagsInUseLine: true,
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

func (c creation) run(ctx context.Context, factory util.Factory, print *genericclioptions.PrintFlags, streams genericiooptions.IOStreams, cmd *cobra.Command, args []string) error {
	content, err := c.object(cmd, args)
	if err != nil {
		return err
	}
	object := &unstructured.Unstructured{Object: content}
	object.SetAPIVersion(c.resource.GroupVersion().String())
	object.SetKind(c.kind)
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
	if dryRun != util.DryRunClient {
		client, err := factory.DynamicClient()
		if err != nil {
			return err
		}
		options := metav1.CreateOptions{}
		if dryRun == util.DryRunServer {
			options.DryRun = []string{metav1.DryRunAll}
		}
		if object, err = client.Resource(c.resource).Namespace(namespace).Create(ctx, object, options); err != nil {
			return err
		}
	}
	printer, err := print.ToPrinter()
	if err != nil {
		return err
	}
	return printer.PrintObj(object, streams.Out)
}
