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

// writers is the maximum number of concurrent requests that apply or reconcile objects.
const writers = 8

// reconcilePolicy creates the default cluster roles and bindings, and adds missing default rules
// and subjects to existing roles and bindings. It keeps an administrator's additions, and does not
// change protected roles and bindings.
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

func reconcileRole(client kubernetes.Interface, role *rbacv1.ClusterRole, existing *current) error {
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

func reconcileBinding(client kubernetes.Interface, binding *rbacv1.ClusterRoleBinding, existing *current) error {
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

// current contains the cluster's roles and bindings at the start of the reconciliation.
type current struct {
	roles    map[string]*rbacv1.ClusterRole
	bindings map[string]*rbacv1.ClusterRoleBinding
}

func storedPolicy(ctx context.Context, client kubernetes.Interface) (*current, error) {
	roles, err := client.RbacV1().ClusterRoles().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list cluster roles: %w", err)
	}
	bindings, err := client.RbacV1().ClusterRoleBindings().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list cluster role bindings: %w", err)
	}
	existing := &current{map[string]*rbacv1.ClusterRole{}, map[string]*rbacv1.ClusterRoleBinding{}}
	for i := range roles.Items {
		existing.roles[roles.Items[i].Name] = &roles.Items[i]
	}
	for i := range bindings.Items {
		existing.bindings[bindings.Items[i].Name] = &bindings.Items[i]
	}
	return existing, nil
}

// firstRole serves the first request for a role from current, and sends later requests to the
// server. With this cache, a start that changes nothing sends two requests instead of a hundred.
type firstRole struct {
	reconciliation.ClusterRoleModifier
	current   *current
	requested bool
}

// Get returns a cluster role. The first call reads it from current.
func (f *firstRole) Get(namespace, name string) (reconciliation.RuleOwner, error) {
	if f.requested {
		return f.ClusterRoleModifier.Get(namespace, name)
	}
	f.requested = true
	role, ok := f.current.roles[name]
	if !ok {
		return nil, apierrors.NewNotFound(rbacv1.Resource("clusterroles"), name)
	}
	return reconciliation.ClusterRoleRuleOwner{ClusterRole: role}, nil
}

// firstBinding is like firstRole, but for bindings.
type firstBinding struct {
	reconciliation.ClusterRoleBindingClientAdapter
	current   *current
	requested bool
}

// Get returns a cluster role binding. The first call reads it from current.
func (f *firstBinding) Get(namespace, name string) (reconciliation.RoleBinding, error) {
	if f.requested {
		return f.ClusterRoleBindingClientAdapter.Get(namespace, name)
	}
	f.requested = true
	binding, ok := f.current.bindings[name]
	if !ok {
		return nil, apierrors.NewNotFound(rbacv1.Resource("clusterrolebindings"), name)
	}
	return reconciliation.ClusterRoleBindingAdapter{ClusterRoleBinding: binding}, nil
}
