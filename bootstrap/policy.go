package bootstrap

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
	"k8s.io/component-helpers/auth/rbac/reconciliation"

	"github.com/slipway-platform/slipway/bootstrap/policy"
)

// writers bounds the requests that are under way at once.
const writers = 8

// reconcilePolicy makes the default cluster roles and bindings, and gives back to those that exist
// the rules and subjects that they lack. What an administrator added stays, and so does a role or
// binding that is protected.
func reconcilePolicy(ctx context.Context, client kubernetes.Interface) error {
	roles, err := policy.Roles()
	if err != nil {
		return err
	}
	bindings, err := policy.Bindings()
	if err != nil {
		return err
	}
	current, err := storedPolicy(ctx, client)
	if err != nil {
		return err
	}
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(writers)
	for i := range roles {
		role := &roles[i]
		if existing, ok := current.roles[role.Name]; ok && policy.Protected(existing) {
			continue
		}
		work.Go(func() error { return reconcileRole(client, role, current) })
	}
	for i := range bindings {
		binding := &bindings[i]
		if existing, ok := current.bindings[binding.Name]; ok && policy.Protected(existing) {
			continue
		}
		work.Go(func() error { return reconcileBinding(client, binding, current) })
	}
	return work.Wait()
}

func reconcileRole(client kubernetes.Interface, role *rbacv1.ClusterRole, existing *stored) error {
	options := reconciliation.ReconcileRoleOptions{
		Role: reconciliation.ClusterRoleRuleOwner{ClusterRole: role}, Confirm: true,
		Client: &firstRole{reconciliation.ClusterRoleModifier{Client: client.RbacV1().ClusterRoles()}, existing, false},
	}
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		_, err := options.Run()
		return err
	})
	if err != nil {
		return fmt.Errorf("reconcile cluster role %q: %w", role.Name, err)
	}
	return nil
}

func reconcileBinding(client kubernetes.Interface, binding *rbacv1.ClusterRoleBinding, existing *stored) error {
	options := reconciliation.ReconcileRoleBindingOptions{
		RoleBinding: reconciliation.ClusterRoleBindingAdapter{ClusterRoleBinding: binding}, Confirm: true,
		Client: &firstBinding{reconciliation.ClusterRoleBindingClientAdapter{Client: client.RbacV1().ClusterRoleBindings()}, existing, false},
	}
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		_, err := options.Run()
		return err
	})
	if err != nil {
		return fmt.Errorf("reconcile cluster role binding %q: %w", binding.Name, err)
	}
	return nil
}

// stored is what the cluster has at the start.
type stored struct {
	roles    map[string]*rbacv1.ClusterRole
	bindings map[string]*rbacv1.ClusterRoleBinding
}

func storedPolicy(ctx context.Context, client kubernetes.Interface) (*stored, error) {
	roles, err := client.RbacV1().ClusterRoles().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list cluster roles: %w", err)
	}
	bindings, err := client.RbacV1().ClusterRoleBindings().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list cluster role bindings: %w", err)
	}
	existing := &stored{map[string]*rbacv1.ClusterRole{}, map[string]*rbacv1.ClusterRoleBinding{}}
	for i := range roles.Items {
		existing.roles[roles.Items[i].Name] = &roles.Items[i]
	}
	for i := range bindings.Items {
		existing.bindings[bindings.Items[i].Name] = &bindings.Items[i]
	}
	return existing, nil
}

// firstRole answers the first question for a role from what was listed, later ones from the server:
// a start in which nothing changed asks twice and not a hundred times.
type firstRole struct {
	reconciliation.ClusterRoleModifier
	stored *stored
	asked  bool
}

// Get finds a cluster role.
func (f *firstRole) Get(namespace, name string) (reconciliation.RuleOwner, error) {
	if f.asked {
		return f.ClusterRoleModifier.Get(namespace, name)
	}
	f.asked = true
	role, ok := f.stored.roles[name]
	if !ok {
		return nil, apierrors.NewNotFound(rbacv1.Resource("clusterroles"), name)
	}
	return reconciliation.ClusterRoleRuleOwner{ClusterRole: role}, nil
}

// firstBinding is firstRole for bindings.
type firstBinding struct {
	reconciliation.ClusterRoleBindingClientAdapter
	stored *stored
	asked  bool
}

// Get finds a cluster role binding.
func (f *firstBinding) Get(namespace, name string) (reconciliation.RoleBinding, error) {
	if f.asked {
		return f.ClusterRoleBindingClientAdapter.Get(namespace, name)
	}
	f.asked = true
	binding, ok := f.stored.bindings[name]
	if !ok {
		return nil, apierrors.NewNotFound(rbacv1.Resource("clusterrolebindings"), name)
	}
	return reconciliation.ClusterRoleBindingAdapter{ClusterRoleBinding: binding}, nil
}
