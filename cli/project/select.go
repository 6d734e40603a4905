package project

import (
	"context"
	"fmt"

	projectv1 "github.com/openshift/api/project/v1"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/kubectl/pkg/cmd/util"
)

// New returns the `oc project` command, which prints or selects the current project.
func New(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	s := &selection{factory: factory, IOStreams: streams}
	command := &cobra.Command{
		Use:   "project [NAME]",
		Short: "Switch to another project",
		Long:  "Switch to another project, or to a context of the kubeconfig, and print the current project.",
		Args:  cobra.MaximumNArgs(1),
		Run: func(command *cobra.Command, args []string) {
			util.CheckErr(s.complete(args))
			util.CheckErr(s.run(command.Context()))
		},
	}
	command.Flags().BoolVarP(&s.short, "short", "q", false, "Print only the name.")
	return command
}

// selection holds the state of `oc project`.
type selection struct {
	factory util.Factory
	genericiooptions.IOStreams
	short bool

	name            string // project or context to select, or "" to print the current project
	current, server string
}

func (s *selection) complete(args []string) (err error) {
	if len(args) > 0 {
		s.name = args[0]
	}
	if s.current, _, err = s.factory.ToRawKubeConfigLoader().Namespace(); err != nil {
		return err
	}
	config, err := s.factory.ToRESTConfig()
	if err != nil {
		return err
	}
	s.server = config.Host
	return nil
}

func (s *selection) run(ctx context.Context) error {
	if s.name == "" {
		s.print(s.current, "Using project %q on server %q.\n", s.current, s.server)
		return nil
	}
	context, err := useContext(s.factory, s.name)
	if err != nil {
		return err
	}
	if context != nil {
		s.print(context.namespace, "Now using project %q from context named %q on server %q.\n", context.namespace, s.name, context.server)
		return nil
	}
	if err := seesProject(ctx, s.factory, s.name); err != nil {
		return err
	}
	if s.current == s.name {
		fmt.Fprintf(s.Out, "Already on project %q on server %q.\n", s.current, s.server)
		return nil
	}
	if err := useProject(s.factory, s.name); err != nil {
		return err
	}
	s.print(s.name, "Now using project %q on server %q.\n", s.name, s.server)
	return nil
}

// print prints a message. If --short is set, it prints only the name.
func (s *selection) print(name, format string, values ...any) {
	if s.short {
		fmt.Fprintln(s.Out, name)
		return
	}
	fmt.Fprintf(s.Out, format, values...)
}

// seesProject returns an error if the user cannot see a project. The error for a hidden project is
// the same as for a project that does not exist.
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

// useProject selects a project in the kubeconfig. As in OpenShift, each project has its own
// context.
func useProject(factory util.Factory, name string) error {
	loader := factory.ToRawKubeConfigLoader()
	config, err := loader.RawConfig()
	if err != nil {
		return err
	}
	present := config.Contexts[config.CurrentContext]
	if present == nil {
		return fmt.Errorf("switch to project %q: the kubeconfig has no current context", name)
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
		return fmt.Errorf("switch to project %q: %w", name, err)
	}
	return nil
}
