// Package project implements `oc project`, `oc projects`, `oc new-project` and `oc adm
// new-project`, which create, list and select projects.
package project

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	projectv1 "github.com/openshift/api/project/v1"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/dynamic"
	"k8s.io/kubectl/pkg/cmd/util"

	"github.com/slipway-platform/slipway/cli/objects"
)

// listOptions holds the state of `oc projects`.
type listOptions struct {
	out     io.Writer
	client  dynamic.Interface
	server  string // the server's URL
	current string // name of the current project
	short   bool
}

// NewList returns the `oc projects` command, which lists the user's projects.
func NewList(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := &listOptions{out: streams.Out}
	command := &cobra.Command{
		Use:   "projects",
		Short: "Display existing projects",
		Long:  "Display information about the current active project and existing projects on the server.",
		Run: func(command *cobra.Command, args []string) {
			if len(args) > 0 {
				util.CheckErr(util.UsageErrorf(command, "no arguments should be passed"))
			}
			util.CheckErr(o.complete(factory))
			util.CheckErr(o.run(command.Context()))
		},
	}
	command.Flags().BoolVarP(&o.short, "short", "q", false, "Print only the names.")
	return command
}

func (o *listOptions) complete(factory util.Factory) error {
	config, err := factory.ToRESTConfig()
	if err != nil {
		return err
	}
	o.server = config.Host
	if o.client, err = factory.DynamicClient(); err != nil {
		return err
	}
	o.current, _, err = factory.ToRawKubeConfigLoader().Namespace()
	return err
}

func (o *listOptions) run(ctx context.Context) error {
	projects, err := objects.List[projectv1.Project](ctx, o.client, projectv1.GroupVersion.WithResource("projects"), "", metav1.ListOptions{})
	if err != nil {
		return err
	}
	slices.SortFunc(projects, func(a, b projectv1.Project) int { return strings.Compare(a.Name, b.Name) })
	if !o.short {
		writeProjects(o.out, projects, o.current, o.server)
		return nil
	}
	for _, project := range projects {
		fmt.Fprintln(o.out, project.Name)
	}
	return nil
}

// writeProjects prints projects and their display names. A star marks the current project.
func writeProjects(out io.Writer, projects []projectv1.Project, current, server string) {
	title := func(project projectv1.Project) string {
		if display := project.Annotations["openshift.io/display-name"]; display != "" && display != project.Name {
			return project.Name + " - " + display
		}
		return project.Name
	}
	switch len(projects) {
	case 0:
		fmt.Fprint(out, "You are not a member of any projects. You can request a project to be created with the 'new-project' command.\n")
		return
	case 1:
		fmt.Fprintf(out, "You have one project on this server: %q.\n", title(projects[0]))
	default:
		fmt.Fprint(out, "You have access to the following projects and can switch between them with 'oc project <projectname>':\n\n")
		for _, project := range projects {
			mark := " "
			if project.Name == current {
				mark = "*"
			}
			fmt.Fprintf(out, "  %s %s\n", mark, title(project))
		}
	}
	fmt.Fprintf(out, "\nUsing project %q on server %q.\n", current, server)
}
