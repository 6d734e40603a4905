package deploymentconfig

import (
	"context"
	"fmt"
	"strings"

	appsv1 "github.com/openshift/api/apps/v1"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/scheme"
)

// deploying describes a command that starts, retries or cancels deployments of a DeploymentConfig.
// do returns the deployment config and a message.
type deploying struct {
	use, short string
	do         func(client *Client, ctx context.Context, namespace, name string) (dc *appsv1.DeploymentConfig, done string, err error)
}

// NewRollout returns the `rollout` subcommands that support only DeploymentConfigs.
func NewRollout(factory util.Factory, streams genericiooptions.IOStreams) []*cobra.Command {
	retry, dryRun := false, false
	deploy := func(client *Client, ctx context.Context, namespace, name string) (*appsv1.DeploymentConfig, string, error) {
		if dryRun {
			return client.tryDeploy(ctx, namespace, name, retry)
		}
		return client.Deploy(ctx, namespace, name, retry)
	}
	latest := newDeploying(factory, streams, deploying{"latest dc/NAME", "Start a new rollout with the current images, even if nothing has changed", deploy})
	latest.Flags().BoolVar(&retry, "again", false, "If a rollout is in progress, cancel it and start a new one.")
	latest.Flags().BoolVar(&dryRun, "dry-run", false, "Print what would be rolled out, without changing anything.")
	return []*cobra.Command{
		latest,
		newDeploying(factory, streams, deploying{"cancel dc/NAME", "Cancel the rollout that is in progress", (*Client).Cancel}),
		newDeploying(factory, streams, deploying{"retry dc/NAME", "Retry the latest rollout, if it failed", (*Client).Retry}),
	}
}

func newDeploying(factory util.Factory, streams genericiooptions.IOStreams, mode deploying) *cobra.Command {
	print := genericclioptions.NewPrintFlags("").WithTypeSetter(scheme.Scheme)
	command := &cobra.Command{
		Use: mode.use, Short: mode.short, Args: cobra.MinimumNArgs(1),
		Run: func(command *cobra.Command, args []string) {
			client, namespace, err := deployments(factory)
			util.CheckErr(err)
			for _, arg := range args {
				name, err := configName(factory, arg)
				util.CheckErr(err)
				dc, done, err := mode.do(client, command.Context(), namespace, name)
				util.CheckErr(err)
				if *print.OutputFormat == "revision" {
					fmt.Fprintln(streams.Out, dc.Status.LatestVersion)
					continue
				}
				print.NamePrintFlags.Operation = done
				printer, err := print.ToPrinter()
				util.CheckErr(err)
				util.CheckErr(printer.PrintObj(dc, streams.Out))
			}
		},
	}
	print.AddFlags(command)
	command.Flags().Lookup("output").Usage += " With revision, print only the number of the rollout."
	return command
}

// deployments returns a deployment client and the current project.
func deployments(factory util.Factory) (*Client, string, error) {
	namespace, _, err := factory.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, "", err
	}
	config, err := factory.ToRESTConfig()
	if err != nil {
		return nil, "", err
	}
	client, err := New(config)
	return client, namespace, err
}

// configName returns the name of a DeploymentConfig given as NAME or dc/NAME. If the argument
// specifies another resource and the server is reachable, the error contains the server's name for
// that resource.
func configName(factory util.Factory, arg string) (string, error) {
	resource, name, ok := strings.Cut(arg, "/")
	if !ok {
		return arg, nil
	}
	switch strings.TrimSuffix(resource, "."+appsv1.GroupName) {
	case "dc", "deploymentconfig", "deploymentconfigs":
		return name, nil
	}
	if mapper, err := factory.ToRESTMapper(); err == nil {
		if full, err := mapper.ResourceFor(schema.ParseGroupResource(resource).WithVersion("")); err == nil {
			resource = full.Resource
		}
	}
	return "", fmt.Errorf("expected deployment configuration, got %s: name one, as in dc/NAME", resource)
}
