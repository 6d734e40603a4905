package deploymentconfig

import (
	"context"
	"fmt"
	"io"
	"strings"

	appsv1 "github.com/openshift/api/apps/v1"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/scheme"

	"github.com/slipway-platform/slipway/cli/describe"
)

// NewRollback returns `oc rollback`.
func NewRollback(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	print := genericclioptions.NewPrintFlags("").WithTypeSetter(scheme.Scheme)
	rollback, dry := &appsv1.DeploymentConfigRollback{Spec: appsv1.DeploymentConfigRollbackSpec{IncludeTemplate: true}}, false
	command := &cobra.Command{
		Use:   "rollback (dc/NAME | DEPLOYMENT) [--to-version=N]",
		Short: "Revert part of an application back to a previous deployment",
		Long: `Go back to the pods of an earlier deployment of a deployment config.

The command disables image triggers, because they could undo the rollback. To enable them again:
oc set triggers dc/NAME --auto.`,
		Args: cobra.ExactArgs(1),
		Run: func(command *cobra.Command, args []string) {
			name, err := configName(strings.TrimPrefix(args[0], "rc/"))
			util.CheckErr(err)
			client, namespace, err := deployments(factory)
			util.CheckErr(err)
			rollback.Name, rollback.Spec.Revision, err = client.Target(command.Context(), namespace, name, rollback.Spec.Revision)
			util.CheckErr(err)
			if dry || *print.OutputFormat != "" {
				earlier, err := client.Earlier(command.Context(), namespace, rollback)
				util.CheckErr(err)
				util.CheckErr(showEarlier(command.Context(), factory, streams.Out, print, earlier))
				return
			}
			config, err := client.GoBack(command.Context(), namespace, rollback, false)
			util.CheckErr(err)
			fmt.Fprintf(streams.Out, "deploymentconfig.apps.openshift.io/%s rolled back\n", config.Name)
			var disabled []string
			for _, trigger := range config.Spec.Triggers {
				if params := trigger.ImageChangeParams; params != nil {
					disabled = append(disabled, params.From.Name)
				}
			}
			if len(disabled) > 0 {
				fmt.Fprintf(streams.ErrOut, "Warning: the following images triggers were disabled: %s\n  You can re-enable them with: oc set triggers dc/%s --auto\n",
					strings.Join(disabled, ","), config.Name)
			}
		},
	}
	flags := command.Flags()
	flags.Int64Var(&rollback.Spec.Revision, "to-version", 0, "Version of the deployment to go back to. The default is the newest complete one before the latest.")
	flags.BoolVar(&rollback.Spec.IncludeTriggers, "change-triggers", false, "Restore its triggers, too.")
	flags.BoolVar(&rollback.Spec.IncludeStrategy, "change-strategy", false, "Restore its strategy, too.")
	flags.BoolVar(&rollback.Spec.IncludeReplicationMeta, "change-scaling-settings", false, "Restore its replica count and selector, too.")
	flags.BoolVarP(&dry, "dry-run", "d", false, "Print the result without changing anything.")
	print.AddFlags(command)
	return command
}

// showEarlier prints the resulting configuration: as oc describe does, or in the requested format.
func showEarlier(ctx context.Context, factory util.Factory, out io.Writer, print *genericclioptions.PrintFlags, earlier *appsv1.DeploymentConfig) error {
	if *print.OutputFormat != "" {
		printer, err := print.ToPrinter()
		if err != nil {
			return err
		}
		return printer.PrintObj(earlier, out)
	}
	client, err := factory.DynamicClient()
	if err != nil {
		return err
	}
	earlier.SetGroupVersionKind(appsv1.GroupVersion.WithKind("DeploymentConfig"))
	text, err := describe.Given(ctx, client, "", earlier)
	fmt.Fprint(out, text)
	return err
}
