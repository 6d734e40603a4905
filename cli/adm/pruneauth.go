package adm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	oauthv1 "github.com/openshift/api/oauth/v1"
	securityv1 "github.com/openshift/api/security/v1"
	userv1 "github.com/openshift/api/user/v1"
	"github.com/spf13/cobra"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/dynamic"
	"k8s.io/kubectl/pkg/cmd/util"
)

// newPruneAuth returns the `oc adm prune auth` command.
func newPruneAuth(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	p := &authPruning{factory: factory, out: streams.Out}
	command := &cobra.Command{
		Use:   "auth (USER | GROUP | ROLE | CLUSTERROLE)...",
		Short: "Remove references to users, groups and roles",
		Long: `Remove references to users, groups, roles and cluster roles: from bindings, groups, SCCs and the clients that users granted access.

The objects themselves are not removed, and can already be deleted. Specify a deleted object with its type: user/alice.`,
		Example: `  # Remove all references to a user and to a group
  oc adm prune auth users/alice groups/developers

  # Remove all bindings of the roles of a project
  oc adm prune auth roles --all -n shop`,
		Run: func(command *cobra.Command, args []string) {
			util.CheckErr(p.complete(args))
			util.CheckErr(p.run(command.Context()))
		},
	}
	util.AddFilenameOptionFlags(command, &p.files, "with the objects to prune references to.")
	command.Flags().BoolVar(&p.all, "all", false, "Select all objects of the given types.")
	command.Flags().StringVarP(&p.selector, "selector", "l", "", "Select objects with these labels.")
	return command
}

// authPruning holds the state of `oc adm prune auth`.
type authPruning struct {
	factory  util.Factory
	out      io.Writer
	files    resource.FilenameOptions
	all      bool
	selector string

	args    []string
	client  dynamic.Interface
	objects *resource.Builder // selects the objects whose references are removed
}

func (p *authPruning) complete(args []string) (err error) {
	p.args = args
	if p.client, err = p.factory.DynamicClient(); err != nil {
		return err
	}
	namespace, explicit, err := p.factory.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return err
	}
	builder := p.factory.NewBuilder().Unstructured().NamespaceParam(namespace).DefaultNamespace().
		FilenameParam(explicit, &p.files).ContinueOnError().Flatten()
	if p.selector != "" || p.all || len(p.files.Filenames) > 0 {
		p.objects = builder.LabelSelectorParam(p.selector).SelectAllParam(p.all).ResourceTypeOrNameArgs(p.all, args...)
	} else {
		// Do not read the objects themselves, because they might have already been deleted.
		p.objects = builder.ResourceNames("", args...).RequireObject(false)
	}
	return nil
}

func (p *authPruning) run(ctx context.Context) error {
	count := 0
	err := p.objects.Do().Visit(func(info *resource.Info, err error) error {
		if err != nil {
			return err
		}
		count++
		return p.prune(ctx, info)
	})
	if err == nil && count == 0 && len(p.args) == 0 {
		return errors.New("specify the objects whose references to remove, such as users/alice")
	}
	return err
}

// prune removes all references to an object.
func (p *authPruning) prune(ctx context.Context, info *resource.Info) error {
	switch info.Mapping.Resource.Resource {
	case "roles":
		return p.deleteBindings(ctx, rbacv1.RoleRef{Kind: "Role", Name: info.Name}, info.Namespace, "rolebindings")
	case "clusterroles":
		ref := rbacv1.RoleRef{Kind: "ClusterRole", Name: info.Name}
		return errors.Join(p.deleteBindings(ctx, ref, "", "clusterrolebindings"), p.deleteBindings(ctx, ref, "", "rolebindings"))
	case "users":
		return errors.Join(
			p.unbind(ctx, rbacv1.UserKind, info.Name),
			p.removeFrom(ctx, securityv1.GroupVersion.WithResource("securitycontextconstraints"), "securitycontextconstraints", "users", info.Name),
			p.removeFrom(ctx, userv1.GroupVersion.WithResource("groups"), "group", "users", info.Name),
			p.deleteGrants(ctx, info.Name),
		)
	case "groups":
		return errors.Join(
			p.unbind(ctx, rbacv1.GroupKind, info.Name),
			p.removeFrom(ctx, securityv1.GroupVersion.WithResource("securitycontextconstraints"), "securitycontextconstraints", "groups", info.Name),
		)
	}
	return fmt.Errorf("prune %s %q: must be a user, group, role or clusterrole", info.Mapping.Resource.Resource, info.Name)
}

// each calls action for every object of a resource, and returns all of action's errors. It ignores
// NotFound errors, because another client can delete an object concurrently. An empty namespace
// means all namespaces.
func (p *authPruning) each(ctx context.Context, gvr schema.GroupVersionResource, namespace string, action func(dynamic.ResourceInterface, *unstructured.Unstructured) error) error {
	list, err := p.client.Resource(gvr).Namespace(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	var problems []error
	for i := range list.Items {
		object := &list.Items[i]
		if err := action(p.client.Resource(gvr).Namespace(object.GetNamespace()), object); !apierrors.IsNotFound(err) {
			problems = append(problems, err)
		}
	}
	return errors.Join(problems...)
}

// deleteBindings deletes the bindings that refer to a role. An empty namespace means all
// namespaces.
func (p *authPruning) deleteBindings(ctx context.Context, ref rbacv1.RoleRef, namespace, plural string) error {
	gvr := rbacv1.SchemeGroupVersion.WithResource(plural)
	return p.each(ctx, gvr, namespace, func(client dynamic.ResourceInterface, binding *unstructured.Unstructured) error {
		kind, _, _ := unstructured.NestedString(binding.Object, "roleRef", "kind")
		name, _, _ := unstructured.NestedString(binding.Object, "roleRef", "name")
		if kind != ref.Kind || name != ref.Name {
			return nil
		}
		if err := client.Delete(ctx, binding.GetName(), metav1.DeleteOptions{}); err != nil {
			return err
		}
		fmt.Fprintf(p.out, "%s.%s/%s deleted\n", plural[:len(plural)-1], gvr.Group, binding.GetName())
		return nil
	})
}

// unbind removes a user or group from all role bindings and cluster role bindings.
func (p *authPruning) unbind(ctx context.Context, kind, name string) error {
	remove := func(gvr schema.GroupVersionResource) func(dynamic.ResourceInterface, *unstructured.Unstructured) error {
		return func(client dynamic.ResourceInterface, binding *unstructured.Unstructured) error {
			subjects, _, _ := unstructured.NestedSlice(binding.Object, "subjects")
			rest := slices.DeleteFunc(slices.Clone(subjects), func(subject any) bool {
				fields, _ := subject.(map[string]any)
				return fields["kind"] == kind && fields["name"] == name
			})
			if len(rest) == len(subjects) {
				return nil
			}
			if err := unstructured.SetNestedSlice(binding.Object, rest, "subjects"); err != nil {
				return err
			}
			return p.update(ctx, client, binding, gvr.Resource[:len(gvr.Resource)-1]+"."+gvr.Group)
		}
	}
	cluster, local := rbacv1.SchemeGroupVersion.WithResource("clusterrolebindings"), rbacv1.SchemeGroupVersion.WithResource("rolebindings")
	return errors.Join(p.each(ctx, cluster, "", remove(cluster)), p.each(ctx, local, "", remove(local)))
}

// removeFrom removes a name from all objects of a cluster-scoped resource. list is the name of the
// field that contains the names.
func (p *authPruning) removeFrom(ctx context.Context, gvr schema.GroupVersionResource, title, list, name string) error {
	return p.each(ctx, gvr, "", func(client dynamic.ResourceInterface, object *unstructured.Unstructured) error {
		names, _, _ := unstructured.NestedStringSlice(object.Object, list)
		rest := slices.DeleteFunc(slices.Clone(names), func(item string) bool { return item == name })
		if len(rest) == len(names) {
			return nil
		}
		if err := unstructured.SetNestedStringSlice(object.Object, rest, list); err != nil {
			return err
		}
		return p.update(ctx, client, object, title+"."+gvr.Group)
	})
}

func (p *authPruning) update(ctx context.Context, client dynamic.ResourceInterface, object *unstructured.Unstructured, title string) error {
	if _, err := client.Update(ctx, object, metav1.UpdateOptions{}); err != nil {
		return err
	}
	fmt.Fprintf(p.out, "%s/%s updated\n", title, object.GetName())
	return nil
}

// deleteGrants deletes a user's OAuthClientAuthorizations.
func (p *authPruning) deleteGrants(ctx context.Context, user string) error {
	gvr := oauthv1.GroupVersion.WithResource("oauthclientauthorizations")
	return p.each(ctx, gvr, "", func(client dynamic.ResourceInterface, grant *unstructured.Unstructured) error {
		if name, _, _ := unstructured.NestedString(grant.Object, "userName"); name != user {
			return nil
		}
		if err := client.Delete(ctx, grant.GetName(), metav1.DeleteOptions{}); err != nil {
			return err
		}
		fmt.Fprintf(p.out, "oauthclientauthorization.%s/%s deleted\n", gvr.Group, grant.GetName())
		return nil
	})
}
