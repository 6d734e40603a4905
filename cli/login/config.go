package login

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	userv1 "github.com/openshift/api/user/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// whoIs returns the name of the user whose credentials are in config.
func whoIs(ctx context.Context, config *rest.Config) (string, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return "", err
	}
	user, err := client.Resource(userv1.GroupVersion.WithResource("users")).Get(ctx, "~", metav1.GetOptions{})
	if err != nil {
		return "", explainLogin(err)
	}
	return user.GetName(), nil
}

// listProjects returns the sorted names of the projects that the user can access, or nil if the
// server does not list them.
func listProjects(ctx context.Context, config *rest.Config) (names []string) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil
	}
	projects := schema.GroupVersionResource{Group: "project.openshift.io", Version: "v1", Resource: "projects"}
	list, err := client.Resource(projects).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil
	}
	for _, project := range list.Items {
		names = append(names, project.GetName())
	}
	slices.Sort(names)
	return names
}

// mayRequestProjects reports whether the user is allowed to request projects. If this cannot be
// determined, it returns true.
func mayRequestProjects(ctx context.Context, config *rest.Config) bool {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return true
	}
	err = client.RESTClient().Get().AbsPath("/apis/project.openshift.io/v1/projectrequests").Do(ctx).Error()
	return !apierrors.IsForbidden(err)
}

// PrintWithoutProjects reports whether the user has no projects. If so, it prints how to get a
// project.
func PrintWithoutProjects(ctx context.Context, config *rest.Config, out io.Writer) bool {
	if len(listProjects(ctx, config)) > 0 {
		return false
	}
	printProjects(out, nil, "", mayRequestProjects(ctx, config))
	return true
}

// printProjects prints the current project and the projects that the user can switch to.
func printProjects(out io.Writer, projects []string, current string, mayRequest bool) {
	switch len(projects) {
	case 0:
		if !mayRequest {
			fmt.Fprint(out, "You don't have any projects. Contact your system administrator to request a project.\n\n")
			return
		}
		fmt.Fprint(out, "You don't have any projects. You can try to create a new project, by running\n\n    oc new-project <projectname>\n\n")
	case 1:
		fmt.Fprintf(out, "You have one project on this server: %q\n\nUsing project %q.\n", projects[0], current)
	default:
		fmt.Fprint(out, "You have access to the following projects and can switch between them with 'oc project <projectname>':\n\n")
		for _, project := range projects {
			mark := " "
			if project == current {
				mark = "*"
			}
			fmt.Fprintf(out, "  %s %s\n", mark, project)
		}
		fmt.Fprintf(out, "\nUsing project %q.\n", current)
	}
}

// clusterName returns the name that a kubeconfig uses for a server: its host and port, with dashes
// instead of dots.
func clusterName(server string) string {
	u, err := url.Parse(server)
	if err != nil {
		return server
	}
	return strings.ReplaceAll(u.Host, ".", "-")
}

// save writes the connection to the kubeconfig and makes it the current context.
func (o *loginOptions) save(cluster *api.Cluster, who *identity, namespace string) error {
	name := clusterName(cluster.Server)
	user, current := who.name+"/"+name, namespace+"/"+name+"/"+who.name
	info := who.info.DeepCopy()
	info.LocationOfOrigin = ""
	o.config.Clusters[name], o.config.AuthInfos[user] = cluster, info
	o.config.Contexts[current] = &api.Context{Cluster: name, AuthInfo: user, Namespace: namespace}
	o.config.CurrentContext = current
	if err := clientcmd.ModifyConfig(o.paths, *o.config, false); err != nil {
		return fmt.Errorf("save connection: %w", err)
	}
	return nil
}
