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

// NewRollback returns the `oc rollback` command.
func NewRollback(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	r := &rollback{
		factory: factory, IOStreams: streams, print: genericclioptions.NewPrintFlags("").WithTypeSetter(scheme.Scheme),
		request: appsv1.DeploymentConfigRollback{Spec: appsv1.DeploymentConfigRollbackSpec{IncludeTemplate: true}},
	}
	command := &cobra.Command{
		Use:   "rollback (dc/NAME | DEPLOYMENT) [--to-version=N]",
		Short: "Revert part of an application back to a previous deployment",
		Long: `Roll a deployment config back to the pods of an earlier deployment.

The command disables image triggers, because they could undo the rollback. To enable them again:
oc set triggers dc/NAME --auto.`,
		Args: cobra.ExactArgs(1),
		Run: func(command *cobra.Command, args []string) {
			util.CheckErr(r.complete(command.Context(), args[0]))
			util.CheckErr(r.run(command.Context()))
		},
	}
	flags := command.Flags()
	flags.Int64Var(&r.request.Spec.Revision, "to-version", 0, "Version of the deployment to go back to. The default is the newest complete one before the latest.")
	flags.BoolVar(&r.request.Spec.IncludeTriggers, "change-triggers", false, "Restore its triggers, too.")
	flags.BoolVar(&r.request.Spec.IncludeStrategy, "change-strategy", false, "Restore its strategy, too.")
	flags.BoolVar(&r.request.Spec.IncludeReplicationMeta, "change-scaling-settings", false, "Restore its replica count and selector, too.")
	flags.BoolVarP(&r.dryRun, "dry-run", "d", false, "Print the result without changing anything.")
	r.print.AddFlags(command)
	return command
}

// rollback holds the state of `oc rollback`.
type rollback struct {
	factory util.Factory
	genericiooptions.IOStreams
	print   *genericclioptions.PrintFlags
	dryRun  bool
	request appsv1.DeploymentConfigRollback

	client    *Client
	namespace string
}

// complete determines the deployment config and the version to restore.
func (r *rollback) complete(ctx context.Context, argument string) error {
	name, err := configName(r.factory, strings.TrimPrefix(argument, "rc/"))
	if err != nil {
		return err
	}
	if r.client, r.namespace, err = deployments(r.factory); err != nil {
		return err
	}
	r.request.Name, r.request.Spec.Revision, err = r.client.Target(ctx, r.namespace, name, r.request.Spec.Revision)
	return err
}

func (r *rollback) run(ctx context.Context) error {
	if r.dryRun || *r.print.OutputFormat != "" {
		earlier, err := r.client.Earlier(ctx, r.namespace, &r.request)
		if err != nil {
			return err
		}
		return showEarlier(ctx, r.factory, r.Out, r.print, earlier)
	}
	config, err := r.client.GoBack(ctx, r.namespace, &r.request, false)
	if err != nil {
		return err
	}
	fmt.Fprintf(r.Out, "deploymentconfig.apps.openshift.io/%s rolled back\n", config.Name)
	var disabled []string
	for _, trigger := range config.Spec.Triggers {
		if params := trigger.ImageChangeParams; params != nil {
			disabled = append(disabled, params.From.Name)
		}
	}
	if len(disabled) > 0 {
		fmt.Fprintf(r.ErrOut, "Warning: the following images triggers were disabled: %s\n  You can re-enable them with: oc set triggers dc/%s --auto\n",
			strings.Join(disabled, ","), config.Name)
	}
	return nil
}

// showEarlier prints the deployment config that a rollback would store. If -o does not specify a
// format, it uses the format of oc describe.
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
	text, err := describe.Object(ctx, client, "", earlier)
	fmt.Fprint(out, text)
	return err
}
