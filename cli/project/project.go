// Package project contains `oc project`, `oc projects`, `oc new-project` and `oc adm new-project`,
// which create, list and select projects.
package project

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	projectv1 "github.com/openshift/api/project/v1"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/kubectl/pkg/cmd/util"

	"github.com/slipway-platform/slipway/cli/objects"
	"github.com/slipway-platform/slipway/cli/policy"
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

// New returns `oc project`, which prints the current project or changes it.
func New(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	short := false
	command := &cobra.Command{
		Use:   "project [NAME]",
		Short: "Switch to another project",
		Long:  "Switch to another project, or to a context of the kubeconfig, and print the current project.",
		Args:  cobra.MaximumNArgs(1),
		Run: func(command *cobra.Command, args []string) {
			current, _, err := factory.ToRawKubeConfigLoader().Namespace()
			util.CheckErr(err)
			config, err := factory.ToRESTConfig()
			util.CheckErr(err)
			if len(args) == 0 {
				if short {
					fmt.Fprintln(streams.Out, current)
					return
				}
				fmt.Fprintf(streams.Out, "Using project %q on server %q.\n", current, config.Host)
				return
			}
			if context, err := useContext(factory, args[0]); err != nil || context != nil {
				util.CheckErr(err)
				if short {
					fmt.Fprintln(streams.Out, context.namespace)
					return
				}
				fmt.Fprintf(streams.Out, "Now using project %q from context named %q on server %q.\n", context.namespace, args[0], context.server)
				return
			}
			util.CheckErr(seesProject(command.Context(), factory, args[0]))
			if current == args[0] {
				fmt.Fprintf(streams.Out, "Already on project %q on server %q.\n", current, config.Host)
				return
			}
			util.CheckErr(useProject(factory, args[0]))
			if short {
				fmt.Fprintln(streams.Out, args[0])
				return
			}
			fmt.Fprintf(streams.Out, "Now using project %q on server %q.\n", args[0], config.Host)
		},
	}
	command.Flags().BoolVarP(&short, "short", "q", false, "Print only the name.")
	return command
}

// seesProject reports whether the user can see a project. It does not distinguish hidden projects
// from missing ones.
func seesProject(ctx context.Context, factory util.Factory, name string) error {
	client, err := factory.DynamicClient()
	if err != nil {
		return err
	}
	_, err = client.Resource(projectv1.GroupVersion.WithResource("projects")).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		return fmt.Errorf("you are not a member of project %q; to list your projects, use oc projects", name)
	}
	return err
}

// useProject makes a project the current one in the kubeconfig, in a separate context as OpenShift
// does.
func useProject(factory util.Factory, name string) error {
	loader := factory.ToRawKubeConfigLoader()
	config, err := loader.RawConfig()
	if err != nil {
		return err
	}
	present := config.Contexts[config.CurrentContext]
	if present == nil {
		return fmt.Errorf("change to project %q: the kubeconfig has no current context", name)
	}
	changed := present.DeepCopy()
	changed.Namespace = name
	changed.LocationOfOrigin = ""
	context := name + "/" + present.Cluster + "/" + present.AuthInfo
	if config.Contexts == nil {
		config.Contexts = map[string]*api.Context{}
	}
	config.Contexts[context], config.CurrentContext = changed, context
	if err := clientcmd.ModifyConfig(loader.ConfigAccess(), config, false); err != nil {
		return fmt.Errorf("change to project %q: %w", name, err)
	}
	return nil
}

// NewRequest returns `oc new-project`, which requests a project and changes to it.
func NewRequest(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	request := &projectv1.ProjectRequest{TypeMeta: metav1.TypeMeta{APIVersion: projectv1.GroupVersion.String(), Kind: "ProjectRequest"}}
	stay := false
	command := &cobra.Command{
		Use:   "new-project NAME [--display-name=NAME] [--description=TEXT]",
		Short: "Request a new project",
		Example: `  # Create a project with a display name and a description
  oc new-project web-team-dev --display-name="Web Team Development" --description="Development project for the web team."`,
		Args: cobra.ExactArgs(1),
		Run: func(command *cobra.Command, args []string) {
			request.Name = args[0]
			util.CheckErr(requestProject(command.Context(), factory, request))
			if stay {
				fmt.Fprintf(streams.Out, "Project %q created. To switch to this project and start adding applications, use:\n\n    oc project %s\n", request.Name, request.Name)
				return
			}
			util.CheckErr(useProject(factory, request.Name))
			config, err := factory.ToRESTConfig()
			util.CheckErr(err)
			fmt.Fprintf(streams.Out, "Now using project %q on server %q.\n", request.Name, config.Host)
			fmt.Fprint(streams.Out, firstApplication)
		},
	}
	command.Flags().StringVar(&request.DisplayName, "display-name", "", "Display name of the project.")
	command.Flags().StringVar(&request.Description, "description", "", "Description of the project.")
	command.Flags().BoolVar(&stay, "skip-config-write", false, "Do not change to the new project.")
	return command
}

// firstApplication is the message of OpenShift 3's client after a new project, with a template that
// every cluster has.
const firstApplication = `
You can add applications to this project with the 'new-app' command. For example, try:

    oc new-app openshift//httpd-example

to serve your own page.
`

// requestProject checks first whether the user can request projects, because that response contains
// the administrator's message.
func requestProject(ctx context.Context, factory util.Factory, request *projectv1.ProjectRequest) error {
	client, err := factory.DynamicClient()
	if err != nil {
		return err
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(request)
	if err != nil {
		return err
	}
	delete(object, "status")
	discoverer, err := factory.ToDiscoveryClient()
	if err != nil {
		return err
	}
	if err := discoverer.RESTClient().Get().AbsPath("/apis/project.openshift.io/v1/projectrequests").Do(ctx).Error(); err != nil {
		return err
	}
	_, err = client.Resource(projectv1.GroupVersion.WithResource("projectrequests")).Create(ctx, &unstructured.Unstructured{Object: object}, metav1.CreateOptions{})
	return err
}

// NewAdm returns `oc adm new-project`, which creates a project for another user, with a node
// selector.
func NewAdm(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	var displayName, description, selector, admin, adminRole string
	command := &cobra.Command{
		Use:   "new-project NAME [--admin=USER] [--node-selector=SELECTOR]",
		Short: "Create a new project",
		Args:  cobra.ExactArgs(1),
		Run: func(command *cobra.Command, args []string) {
			annotations := map[string]any{}
			for key, value := range map[string]string{"openshift.io/display-name": displayName, "openshift.io/description": description} {
				if value != "" {
					annotations[key] = value
				}
			}
			if command.Flags().Changed("node-selector") {
				annotations[projectv1.ProjectNodeSelector] = selector
			}
			client, err := factory.DynamicClient()
			util.CheckErr(err)
			project := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": projectv1.GroupVersion.String(), "kind": "Project",
				"metadata": map[string]any{"name": args[0], "annotations": annotations},
			}}
			_, err = client.Resource(projectv1.GroupVersion.WithResource("projects")).Create(command.Context(), project, metav1.CreateOptions{})
			util.CheckErr(err)
			if admin != "" {
				rbac, err := factory.KubernetesClientSet()
				util.CheckErr(err)
				util.CheckErr(policy.BindUser(command.Context(), rbac.RbacV1(), args[0], adminRole, admin))
			}
			fmt.Fprintf(streams.Out, "Created project %s\n", args[0])
		},
	}
	flags := command.Flags()
	flags.StringVar(&displayName, "display-name", "", "Display name of the project.")
	flags.StringVar(&description, "description", "", "Description of the project.")
	flags.StringVar(&selector, "node-selector", "", "Labels of the nodes for the project's pods. An empty value disables the cluster's default.")
	flags.StringVar(&admin, "admin", "", "User who administers the project.")
	flags.StringVar(&adminRole, "admin-role", "admin", "Role of --admin in the project.")
	return command
}
