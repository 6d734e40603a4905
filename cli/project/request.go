package project

import (
	"context"
	"fmt"

	projectv1 "github.com/openshift/api/project/v1"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/util"
)

// NewRequest returns the `oc new-project` command, which requests a project and selects it.
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
	command.Flags().BoolVar(&stay, "skip-config-write", false, "Do not switch to the new project.")
	return command
}

// firstApplication is the message that OpenShift 3's client prints after creating a project. The
// template that the message mentions exists in every cluster.
const firstApplication = `
You can add applications to this project with the 'new-app' command. For example, try:

    oc new-app openshift//httpd-example

to serve your own page.
`

// requestProject requests a project. Before that, it checks whether the user is allowed to request
// projects, because only the response to this check contains the administrator's message.
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
