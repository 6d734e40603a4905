package adm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	networkv1 "github.com/openshift/api/network/v1"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/dynamic"
	"k8s.io/kubectl/pkg/cmd/util"

	"github.com/slipway-platform/slipway/cli/objects"
	"github.com/slipway-platform/slipway/internal/networkplugin"
)

// podNetwork holds the state of an `oc adm pod-network` command, which changes project networks.
//
// Source: OpenShift Container Platform 3.11 Cluster Administration, Managing Networking.
type podNetwork struct {
	factory util.Factory
	client  dynamic.Interface
	change  networkplugin.Change

	projects []string
	selector string
}

const (
	// changeInterval is how often a NetNamespace is checked until its change is complete.
	changeInterval = 100 * time.Millisecond
	// changeTimeout is the maximum time to wait for the control plane to complete a change.
	changeTimeout = 30 * time.Second
)

// newPodNetwork returns the `oc adm pod-network` command.
func newPodNetwork(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	parent := &cobra.Command{
		Use:   "pod-network",
		Short: "Manage pod network",
		Long: `Join, isolate or open the networks of projects.

The commands need the network plugin ` + networkplugin.Multitenant + `, which master-config.yaml names in
networkConfig.networkPluginName.`,
		Run: util.DefaultSubCommandRun(streams.ErrOut),
	}
	parent.AddCommand(
		newNetworkChange(factory, networkplugin.Join, &cobra.Command{
			Use: "join-projects --to=PROJECT {PROJECT... | --selector=SELECTOR}", Short: "Join project network",
			Long: "Join the networks of projects to the network of another project. Pods and services of all these projects can reach each other.",
			Example: `  # Join the networks of two projects to the network of a third
  oc adm pod-network join-projects --to=project1 project2 project3

  # Give the network of a project to all projects with a label
  oc adm pod-network join-projects --to=project1 --selector='share=true'`,
		}),
		newNetworkChange(factory, networkplugin.Isolate, &cobra.Command{
			Use: "isolate-projects {PROJECT... | --selector=SELECTOR}", Short: "Isolate project network",
			Long: "Isolate projects: each gets its own network, which only global projects can reach.",
			Example: `  # Isolate two projects
  oc adm pod-network isolate-projects project1 project2`,
		}),
		newNetworkChange(factory, networkplugin.Global, &cobra.Command{
			Use: "make-projects-global {PROJECT... | --selector=SELECTOR}", Short: "Make project network global",
			Long: "Make projects global: they can reach the pods and services of all projects, and all projects can reach theirs.",
			Example: `  # Open two projects to all others
  oc adm pod-network make-projects-global project1 project2`,
		}),
	)
	return parent
}

// newNetworkChange adds the flags and the Run function of a network change to a command.
func newNetworkChange(factory util.Factory, action networkplugin.Action, command *cobra.Command) *cobra.Command {
	n := &podNetwork{factory: factory, change: networkplugin.Change{Action: action}}
	command.Run = func(command *cobra.Command, args []string) {
		n.projects = args
		if err := n.validate(); err != nil {
			util.CheckErr(util.UsageErrorf(command, "%v", err))
		}
		util.CheckErr(n.complete(command.Context()))
		util.CheckErr(n.run(command.Context()))
	}
	command.Flags().StringVar(&n.selector, "selector", "", "Label selector of the projects.")
	if action == networkplugin.Join {
		command.Flags().StringVar(&n.change.Project, "to", "", "Project whose network the other projects join.")
	}
	return command
}

// validate checks the arguments and flags.
func (n *podNetwork) validate() error {
	if (len(n.projects) == 0) == (n.selector == "") {
		return errors.New("must provide either --selector=<project_selector> or projects")
	}
	if n.change.Action == networkplugin.Join && n.change.Project == "" {
		return errors.New("must provide --to=<project_name>")
	}
	return nil
}

// complete creates the client. If the arguments contain no projects, it finds the projects that
// match the selector.
func (n *podNetwork) complete(ctx context.Context) (err error) {
	if n.client, err = n.factory.DynamicClient(); err != nil {
		return err
	}
	return n.findProjects(ctx)
}

// findProjects checks the network plugin and finds the projects that match the selector.
func (n *podNetwork) findProjects(ctx context.Context) error {
	if err := checkPlugin(ctx, n.client); err != nil {
		return err
	}
	if n.change.Action == networkplugin.Join {
		if _, err := n.netNamespace(ctx, n.change.Project); err != nil {
			return err
		}
	}
	if n.selector == "" {
		return nil
	}
	namespaces, err := objects.List[corev1.Namespace](ctx, n.client, corev1.SchemeGroupVersion.WithResource("namespaces"), "", metav1.ListOptions{LabelSelector: n.selector})
	if err != nil {
		return err
	}
	for _, namespace := range namespaces {
		if namespace.Status.Phase != corev1.NamespaceTerminating {
			n.projects = append(n.projects, namespace.Name)
		}
	}
	if len(n.projects) == 0 {
		return fmt.Errorf("no projects found for selector %q", n.selector)
	}
	return nil
}

// run changes all projects. It returns the errors for the projects that it cannot change.
func (n *podNetwork) run(ctx context.Context) error {
	var errs []error
	for _, project := range n.projects {
		switch {
		case project == n.change.Project: // the project cannot join itself
		case project == metav1.NamespaceDefault && n.change.Action == networkplugin.Isolate:
			errs = append(errs, fmt.Errorf("network isolation for project %q is forbidden", project))
		default:
			errs = append(errs, n.apply(ctx, project))
		}
	}
	return errors.Join(slices.DeleteFunc(errs, func(err error) bool { return err == nil })...)
}

// apply requests a network change for a project and waits until the control plane has completed it.
func (n *podNetwork) apply(ctx context.Context, project string) error {
	// Send only the annotation. The server validates the requested change.
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, networkv1.ChangePodNetworkAnnotation, n.change)
	if _, err := n.client.Resource(netNamespaces()).Patch(ctx, project, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		return err
	}
	err := wait.PollUntilContextTimeout(ctx, changeInterval, changeTimeout, true, func(ctx context.Context) (bool, error) {
		namespace, err := n.netNamespace(ctx, project)
		if err != nil {
			return false, err
		}
		_, pending := namespace.Annotations[networkv1.ChangePodNetworkAnnotation]
		return !pending, nil
	})
	if wait.Interrupted(err) {
		return fmt.Errorf("network change of project %q is still pending after %s; run `slipway logs control-plane` on a master to see the reason", project, changeTimeout)
	}
	return err
}

// netNamespace returns a project's NetNamespace.
func (n *podNetwork) netNamespace(ctx context.Context, project string) (*networkv1.NetNamespace, error) {
	return objects.Get[networkv1.NetNamespace](ctx, n.client, netNamespaces(), "", project)
}

func netNamespaces() schema.GroupVersionResource {
	return networkv1.GroupVersion.WithResource("netnamespaces")
}

// checkPlugin returns an error if the network plugin does not support a separate network per
// project.
func checkPlugin(ctx context.Context, client dynamic.Interface) error {
	network, err := objects.Get[networkv1.ClusterNetwork](ctx, client, networkv1.GroupVersion.WithResource("clusternetworks"), "", networkv1.ClusterNetworkDefault)
	switch {
	case apierrors.IsNotFound(err):
		return errors.New("managing pod network is only supported for openshift multitenant network plugin; this cluster has no ClusterNetwork \"default\"")
	case err != nil:
		return fmt.Errorf("find the network plugin: %w", err)
	case network.PluginName == networkplugin.Multitenant:
		return nil
	}
	return fmt.Errorf("using plugin: %q, managing pod network is only supported for openshift multitenant network plugin; "+
		"set networkConfig.networkPluginName to %s, or isolate projects with network policies", network.PluginName, networkplugin.Multitenant)
}
