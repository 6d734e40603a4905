package policy

import (
	"context"
	"fmt"
	"maps"
	"slices"

	securityv1 "github.com/openshift/api/security/v1"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/dynamic"
	"k8s.io/kubectl/pkg/cmd/util"

	"github.com/slipway-platform/slipway/apigroup/security/scc"
	"github.com/slipway-platform/slipway/bootstrap/policy"
)

// newReconcileSCCs returns the `oc adm policy reconcile-sccs` command.
func newReconcileSCCs(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	r, infrastructure := &reconcile{IOStreams: streams}, ""
	command := r.command(factory, &cobra.Command{
		Use:   "reconcile-sccs",
		Short: "Replace cluster SCCs to match the recommended bootstrap policy",
		Long: `Restore the default security context constraints to their state at the first start.

Without --confirm, the command prints the changes. Additional labels, annotations, users and groups stay, and so do priorities,
unless --additive-only=false is set.`,
		Example: `  # Print the constraints that would change
  oc adm policy reconcile-sccs

  # Change them, and keep users, groups and priorities
  oc adm policy reconcile-sccs --additive-only=true --confirm`,
		Args: cobra.NoArgs,
	}, func(ctx context.Context, factory util.Factory, _ []string) ([]changed, error) {
		client, err := factory.DynamicClient()
		if err != nil {
			return nil, err
		}
		return r.constraints(ctx, client, infrastructure)
	})
	command.Flags().StringVar(&infrastructure, "infrastructure-namespace", "openshift-infra", "Namespace of the platform's own service accounts.")
	return command
}

func (r *reconcile) constraints(ctx context.Context, client dynamic.Interface, infrastructure string) (changes []changed, err error) {
	resource := client.Resource(securityv1.GroupVersion.WithResource("securitycontextconstraints"))
	list, err := resource.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list security context constraints: %w", err)
	}
	for _, constraints := range scc.BuiltIn(infrastructure) {
		var present *scc.Constraints
		for _, item := range list.Items {
			if item.GetName() != constraints.Name {
				continue
			}
			present = &scc.Constraints{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(item.Object, present); err != nil {
				return nil, fmt.Errorf("read security context constraints %q: %w", constraints.Name, err)
			}
		}
		if present != nil && policy.Protected(present) {
			continue
		}
		constraints = merge(constraints, present, r.additive)
		if present != nil && equality.Semantic.DeepEqual(constraints, present) {
			continue
		}
		if err := r.apply(ctx, resource, constraints, present == nil); err != nil {
			return nil, fmt.Errorf("reconcile security context constraints %q: %w", constraints.Name, err)
		}
		changes = append(changes, changed{constraints, "securitycontextconstraints/" + constraints.Name})
	}
	return changes, nil
}

// apply stores constraints if --confirm is set. missing is true if they do not exist yet.
func (r *reconcile) apply(ctx context.Context, resource dynamic.ResourceInterface, constraints *scc.Constraints, missing bool) error {
	if !r.confirm {
		return nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(constraints)
	if err != nil {
		return err
	}
	if missing {
		_, err = resource.Create(ctx, &unstructured.Unstructured{Object: content}, metav1.CreateOptions{})
	} else {
		_, err = resource.Update(ctx, &unstructured.Unstructured{Object: content}, metav1.UpdateOptions{})
	}
	return err
}

// merge returns the default constraints with metadata from the existing constraints. present
// contains the existing constraints, or is nil. If additive is true, merge also keeps the existing
// labels, annotations, users, groups and priority.
func merge(constraints, present *scc.Constraints, additive bool) *scc.Constraints {
	if present == nil {
		return constraints
	}
	merged := constraints.DeepCopy()
	merged.TypeMeta = present.TypeMeta
	merged.ObjectMeta = *present.ObjectMeta.DeepCopy()
	if !additive {
		merged.Labels, merged.Annotations = maps.Clone(constraints.Labels), maps.Clone(constraints.Annotations)
		return merged
	}
	for key, value := range constraints.Annotations {
		if _, has := merged.Annotations[key]; !has {
			metav1.SetMetaDataAnnotation(&merged.ObjectMeta, key, value)
		}
	}
	merged.Users, merged.Groups = union(present.Users, constraints.Users), union(present.Groups, constraints.Groups)
	if present.Priority != nil {
		merged.Priority = present.Priority
	}
	return merged
}

// union returns the elements of first, followed by the elements that only second contains. It never
// returns nil.
func union(first, second []string) []string {
	all := append([]string{}, first...) // never nil, as in the defaults
	for _, name := range second {
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}
