package project

import (
	"context"
	"fmt"

	projectv1 "github.com/openshift/api/project/v1"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/util"

	"github.com/slipway-platform/slipway/cli/policy"
)

// NewAdm returns the `oc adm new-project` command, which creates a project for another user, with a
// node selector.
func NewAdm(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	c := &creation{factory: factory, IOStreams: streams}
	command := &cobra.Command{
		Use:   "new-project NAME [--admin=USER] [--node-selector=SELECTOR]",
		Short: "Create a new project",
		Args:  cobra.ExactArgs(1),
		Run: func(command *cobra.Command, args []string) {
			c.complete(command, args)
			util.CheckErr(c.run(command.Context()))
		},
	}
	flags := command.Flags()
	flags.StringVar(&c.displayName, "display-name", "", "Display name of the project.")
	flags.StringVar(&c.description, "description", "", "Description of the project.")
	flags.StringVar(&c.selector, "node-selector", "", "Labels of the nodes for the project's pods. An empty value disables the cluster's default.")
	flags.StringVar(&c.admin, "admin", "", "User who administers the project.")
	flags.StringVar(&c.adminRole, "admin-role", "admin", "Role of --admin in the project.")
	return command
}

// creation holds the state of `oc adm new-project`.
type creation struct {
	factory util.Factory
	genericiooptions.IOStreams
	displayName, description, selector, admin, adminRole string

	name        string
	annotations map[string]any
}

func (c *creation) complete(command *cobra.Command, args []string) {
	c.name, c.annotations = args[0], map[string]any{}
	for key, value := range map[string]string{"openshift.io/display-name": c.displayName, "openshift.io/description": c.description} {
		if value != "" {
			c.annotations[key] = value
		}
	}
	if command.Flags().Changed("node-selector") {
		c.annotations[projectv1.ProjectNodeSelector] = c.selector
	}
}

func (c *creation) run(ctx context.Context) error {
	client, err := c.factory.DynamicClient()
	if err != nil {
		return err
	}
	project := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": projectv1.GroupVersion.String(), "kind": "Project",
		"metadata": map[string]any{"name": c.name, "annotations": c.annotations},
	}}
	projects := client.Resource(projectv1.GroupVersion.WithResource("projects"))
	if _, err := projects.Create(ctx, project, metav1.CreateOptions{}); err != nil {
		return err
	}
	if c.admin != "" {
		rbac, err := c.factory.KubernetesClientSet()
		if err != nil {
			return err
		}
		if err := policy.BindUser(ctx, rbac.RbacV1(), c.name, c.adminRole, c.admin); err != nil {
			return err
		}
	}
	fmt.Fprintf(c.Out, "Created project %s\n", c.name)
	return nil
}
