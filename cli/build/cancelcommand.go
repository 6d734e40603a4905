package build

import (
	"context"
	"fmt"
	"slices"
	"strings"

	buildv1 "github.com/openshift/api/build/v1"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/util"

	"github.com/slipway-platform/slipway/apigroup/build/instantiate"
)

// buildCancel holds the state of `oc cancel-build`.
type buildCancel struct {
	client  *Client
	streams genericiooptions.IOStreams

	states        []string
	dump, restart bool
}

// NewCancel returns the `oc cancel-build` command.
func NewCancel(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	c := &buildCancel{streams: streams}
	command := &cobra.Command{
		Use:   "cancel-build (BUILD | bc/BUILDCONFIG)...",
		Short: "Cancel running, pending, or new builds",
		Example: `  oc cancel-build ruby-build-2
  oc cancel-build ruby-build-2 --dump-logs --restart
  oc cancel-build bc/ruby-build --state=new`,
		Args: cobra.MinimumNArgs(1),
		Run: func(command *cobra.Command, args []string) {
			var err error
			c.client, err = builds(factory)
			util.CheckErr(err)
			util.CheckErr(c.run(command.Context(), args))
		},
	}
	flags := command.Flags()
	flags.StringSliceVar(&c.states, "state", []string{"new", "pending", "running"}, "Cancel only builds in these phases")
	flags.BoolVar(&c.dump, "dump-logs", false, "Print the log of each build first")
	flags.BoolVar(&c.restart, "restart", false, "Start each build again")
	return command
}

func (c *buildCancel) run(ctx context.Context, args []string) error {
	for _, state := range c.states {
		if !slices.Contains([]string{"new", "pending", "running"}, state) {
			return fmt.Errorf("cannot cancel builds in the phase %q: set --state to new, pending or running", state)
		}
	}
	for _, arg := range args {
		kind, name, err := Name(arg, OfBuild)
		if err != nil {
			return err
		}
		names := []string{name}
		if kind == OfConfig {
			if names, err = c.active(ctx, name); err != nil {
				return err
			}
		}
		for _, name := range names {
			if err := c.cancel(ctx, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// active returns the names of a build config's builds that are in the selected phases. If there are
// no such builds, it prints a message.
func (c *buildCancel) active(ctx context.Context, config string) (names []string, err error) {
	builds, err := c.client.Of(ctx, config)
	if err != nil {
		return nil, err
	}
	for i := range builds {
		if !instantiate.Ended(&builds[i]) && slices.Contains(c.states, strings.ToLower(string(builds[i].Status.Phase))) {
			names = append(names, builds[i].Name)
		}
	}
	if len(names) == 0 {
		fmt.Fprintf(c.streams.ErrOut, "No builds of build config %q can be cancelled\n", config)
	}
	return names, nil
}

func (c *buildCancel) cancel(ctx context.Context, name string) error {
	if c.dump {
		fmt.Fprintf(c.streams.Out, "Build logs for %s:\n", name)
		if err := c.client.Written(ctx, name, c.streams.Out); err != nil {
			fmt.Fprintf(c.streams.ErrOut, "error: unable to fetch logs for %s: %v\n", name, err)
		}
	}
	cancelled, err := c.client.Cancel(ctx, name)
	if err != nil {
		return err
	}
	if cancelled {
		fmt.Fprintf(c.streams.Out, "build.build.openshift.io/%s cancelled\n", name)
	} else {
		fmt.Fprintf(c.streams.ErrOut, "build %q has already ended\n", name)
	}
	if !c.restart {
		return nil
	}
	request := &buildv1.BuildRequest{TriggeredBy: []buildv1.BuildTriggerCause{{Message: "Manually triggered"}}}
	request.Name = name
	build, err := c.client.Again(ctx, request)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.streams.Out, "build.build.openshift.io/%s restarted as %s\n", name, build.Name)
	return nil
}
