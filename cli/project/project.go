// Package project contains `oc project`, `oc projects`, `oc new-project` and `oc adm new-project`,
// which create, list and select projects.
package project

import (
	"fmt"
	"io"
	"slices"
	"strings"

	projectv1 "github.com/openshift/api/project/v1"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/util"

	"github.com/slipway-platform/slipway/cli/objects"
)

// NewList returns `oc projects`, which lists the user's projects.
func NewList(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	short := false
	command := &cobra.Command{
		Use:   "projects",
		Short: "Display existing projects",
		Long:  "Display information about the current active project and existing projects on the server.",
		Run: func(command *cobra.Command, args []string) {
			if len(args) > 0 {
				util.CheckErr(util.UsageErrorf(command, "no arguments should be passed"))
			}
			config, err := factory.ToRESTConfig()
			util.CheckErr(err)
			client, err := factory.DynamicClient()
			util.CheckErr(err)
			projects, err := objects.List[projectv1.Project](command.Context(), client, projectv1.GroupVersion.WithResource("projects"), "", metav1.ListOptions{})
			util.CheckErr(err)
			slices.SortFunc(projects, func(a, b projectv1.Project) int { return strings.Compare(a.Name, b.Name) })
			if short {
				for _, project := range projects {
					fmt.Fprintln(streams.Out, project.Name)
				}
				return
			}
			current, _, err := factory.ToRawKubeConfigLoader().Namespace()
			util.CheckErr(err)
			writeProjects(streams.Out, projects, current, config.Host)
		},
	}
	command.Flags().BoolVarP(&short, "short", "q", false, "Print only the names.")
	return command
}

// writeProjects lists projects with their display names. A star marks the current one.
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
