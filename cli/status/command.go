package status

import (
	"context"
	"fmt"
	"io"
	"time"

	projectv1 "github.com/openshift/api/project/v1"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/util"

	"github.com/slipway-platform/slipway/cli/login"
	"github.com/slipway-platform/slipway/cli/objects"
)

// New returns `oc status`.
func New(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	everywhere, suggest, output := false, false, ""
	command := &cobra.Command{
		Use:   "status [-o dot | --suggest]",
		Short: "Show an overview of the current project",
		Long: `Print an overview of the current project: its services, their pods, the builds and deployments behind
them, and their routes.

The command counts problems. --suggest prints them with remedies. For more about an object, use oc describe, such
as oc describe buildConfig NAME, oc describe deploymentConfig NAME or oc describe service NAME.`,
		Example: `  # Print an overview of the current project
  oc status

  # Also print problems and remedies
  oc status --suggest

  # Draw a graph
  oc status -o dot | dot -T svg > project.svg`,
		Args: cobra.NoArgs,
		Run: func(command *cobra.Command, _ []string) {
			if output != "" && output != "dot" {
				util.CheckErr(util.UsageErrorf(command, "invalid output format %q: must be dot", output))
			}
			if output != "" && suggest {
				util.CheckErr(util.UsageErrorf(command, "--suggest and --output cannot be used together"))
			}
			state, options, err := loadStatus(command.Context(), factory, everywhere, streams.Out)
			util.CheckErr(err)
			if state == nil {
				return
			}
			options.Suggest = suggest
			if output == "dot" {
				util.CheckErr(WriteDot(streams.Out, state, options))
				return
			}
			util.CheckErr(Write(streams.Out, state, options))
		},
	}
	command.Flags().BoolVar(&everywhere, "all-namespaces", false, "Print all projects that you can see.")
	command.Flags().BoolVar(&suggest, "suggest", false, "Print problems and remedies.")
	command.Flags().BoolVar(&suggest, "verbose", false, "Print problems and remedies.")
	util.CheckErr(command.Flags().MarkDeprecated("verbose", "use --suggest instead"))
	command.Flags().StringVarP(&output, "output", "o", "", "Print a graph instead of text: dot.")
	return command
}

// loadStatus reads the current project, or all of them. For a user without projects, it prints how
// to get one, and returns no state.
func loadStatus(ctx context.Context, factory util.Factory, everywhere bool, out io.Writer) (*State, Options, error) {
	options := Options{Now: time.Now()}
	config, err := factory.ToRESTConfig()
	if err != nil {
		return nil, options, err
	}
	options.Server = config.Host
	client, err := factory.DynamicClient()
	if err != nil {
		return nil, options, err
	}
	if !everywhere {
		var isSet bool // with --namespace
		if options.Namespace, isSet, err = factory.ToRawKubeConfigLoader().Namespace(); err != nil {
			return nil, options, err
		}
		project, err := objects.Get[projectv1.Project](ctx, client, projectv1.GroupVersion.WithResource("projects"), "", options.Namespace)
		if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
			if !isSet && login.PrintWithoutProjects(ctx, config, out) {
				return nil, options, nil
			}
			return nil, options, fmt.Errorf("you are not a member of project %q; to list your projects, use oc projects", options.Namespace)
		}
		if err != nil {
			return nil, options, err
		}
		options.Title = project.Annotations["openshift.io/display-name"]
	}
	state, err := Load(ctx, client, options.Namespace)
	return state, options, err
}
