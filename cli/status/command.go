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

// command contains the flags of `oc status`.
type command struct {
	factory             util.Factory
	out                 io.Writer
	everywhere, suggest bool
	output              string
}

// New returns the `oc status` command.
func New(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	c := &command{factory: factory, out: streams.Out}
	cmd := &cobra.Command{
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
		Run: func(cmd *cobra.Command, _ []string) {
			util.CheckErr(c.validate(cmd))
			util.CheckErr(c.run(cmd.Context()))
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&c.everywhere, "all-namespaces", false, "Print all projects that you can see.")
	flags.BoolVar(&c.suggest, "suggest", false, "Print problems and remedies.")
	flags.BoolVar(&c.suggest, "verbose", false, "Print problems and remedies.")
	util.CheckErr(flags.MarkDeprecated("verbose", "use --suggest instead"))
	flags.StringVarP(&c.output, "output", "o", "", "Print a graph instead of text: dot.")
	return cmd
}

func (c *command) validate(cmd *cobra.Command) error {
	if c.output != "" && c.output != "dot" {
		return util.UsageErrorf(cmd, "invalid output format %q: must be dot", c.output)
	}
	if c.output != "" && c.suggest {
		return util.UsageErrorf(cmd, "--suggest and --output cannot be used together")
	}
	return nil
}

func (c *command) run(ctx context.Context) error {
	state, options, err := loadStatus(ctx, c.factory, c.everywhere, c.out)
	if err != nil || state == nil {
		return err
	}
	options.Suggest = c.suggest
	if c.output == "dot" {
		return WriteDot(c.out, state, options)
	}
	return Write(c.out, state, options)
}

// loadStatus reads the objects in the current project, or in all projects. If the user has no
// projects, it prints how to get one and returns a nil state.
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
		var isSet bool // true if --namespace is set
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
