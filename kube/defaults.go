package kube

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	genericserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
	"k8s.io/component-helpers/auth/rbac/reconciliation"
	schedulingv1 "k8s.io/kubernetes/pkg/apis/scheduling/v1"
	rbacrest "k8s.io/kubernetes/pkg/registry/rbac/rest"
	schedulingrest "k8s.io/kubernetes/pkg/registry/scheduling/rest"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy"

	"github.com/slipway-platform/slipway/apiserver"
)

const (
	// defaultsWriters is the maximum number of concurrent requests for default objects.
	defaultsWriters = 8
	// defaultsInterval and defaultsTimeout have upstream's values. The API server exits after the
	// timeout.
	defaultsInterval, defaultsTimeout = time.Second, 30 * time.Second
)

// defaultsHook is the name of the hook that creates Kubernetes' default objects.
const defaultsHook = "slipway/default-objects"

// replaceDefaultsHooks replaces upstream's hooks that create the default policy and the system
// priority classes. The API server is not ready before its hooks have finished. Upstream's hooks
// start only after a second, and then create the objects one by one.
func replaceDefaultsHooks(config *genericserver.Config) error {
	objects := defaults{priorityClasses: true, policy: !config.DisabledPostStartHooks.Has(rbacrest.PostStartHookName)}
	config.DisabledPostStartHooks.Insert(rbacrest.PostStartHookName, schedulingrest.PostStartHookName)
	return config.AddPostStartHook(defaultsHook, func(hook genericserver.PostStartHookContext) error {
		client, err := kubernetes.NewForConfig(apiserver.Unlimited(hook.LoopbackClientConfig))
		if err != nil {
			return fmt.Errorf("create client for default objects: %w", err)
		}
		return objects.ensure(hook, client)
	})
}

// defaults specifies which default objects a hook creates.
type defaults struct{ policy, priorityClasses bool }

// ensure creates the objects and retries until it succeeds. If ctx is done, it returns no error,
// because an error would end the process before the API server has stopped gracefully.
func (d defaults) ensure(ctx context.Context, client kubernetes.Interface) error {
	err := wait.PollUntilContextTimeout(ctx, defaultsInterval, defaultsTimeout, true, func(ctx context.Context) (bool, error) {
		err := d.create(ctx, client)
		if err != nil && ctx.Err() == nil {
			slog.Warn("cannot create all default objects yet", "error", err)
		}
		return err == nil, nil
	})
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("create default objects: %w", err)
	}
	return nil
}

// create creates missing objects, and adds missing rules and subjects to existing objects. Objects
// of Kubernetes 1.9 and earlier are not converted, because Slipway never created them.
func (d defaults) create(ctx context.Context, client kubernetes.Interface) error {
	var work errgroup.Group
	work.SetLimit(defaultsWriters)
	var mu sync.Mutex
	var errs []error
	do := func(kind, name string, create func() error) {
		work.Go(func() error {
			err := retry.OnError(retry.DefaultBackoff, func(err error) bool {
				return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsServiceUnavailable(err)
			}, create)
			if err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, fmt.Errorf("reconcile %s %q: %w", kind, name, err))
			}
			return nil // continue with the other objects
		})
	}
	if d.priorityClasses {
		for _, class := range schedulingv1.SystemPriorityClasses() {
			do("priority class", class.Name, func() error {
				classes := client.SchedulingV1().PriorityClasses()
				_, err := classes.Get(ctx, class.Name, metav1.GetOptions{})
				if apierrors.IsNotFound(err) {
					_, err = classes.Create(ctx, class, metav1.CreateOptions{})
				}
				if apierrors.IsAlreadyExists(err) {
					return nil
				}
				return err
			})
		}
	}
	var err error
	if d.policy {
		err = reconcileClusterPolicy(ctx, client, do)
		reconcileProjectPolicy(client, do)
	}
	_ = work.Wait() // the functions return no errors
	return errors.Join(append(errs, err)...)
}

// reconcileClusterPolicy reconciles the default cluster roles and their bindings. If all of them
// exist and are complete, it sends only two requests.
func reconcileClusterPolicy(ctx context.Context, client kubernetes.Interface,
	do func(kind, name string, reconcile func() error)) error {
	storedRoles, err := client.RbacV1().ClusterRoles().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list cluster roles: %w", err)
	}
	storedBindings, err := client.RbacV1().ClusterRoleBindings().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list cluster role bindings: %w", err)
	}
	owners, subjects := map[string]reconciliation.RuleOwner{}, map[string]reconciliation.RoleBinding{}
	for i := range storedRoles.Items {
		owners[storedRoles.Items[i].Name] = reconciliation.ClusterRoleRuleOwner{ClusterRole: &storedRoles.Items[i]}
	}
	for i := range storedBindings.Items {
		subjects[storedBindings.Items[i].Name] = reconciliation.ClusterRoleBindingAdapter{ClusterRoleBinding: &storedBindings.Items[i]}
	}
	roles := reconciliation.ClusterRoleModifier{Client: client.RbacV1().ClusterRoles()}
	for _, list := range [][]rbacv1.ClusterRole{bootstrappolicy.ClusterRoles(), bootstrappolicy.ControllerRoles()} {
		for _, role := range list {
			listed := &listedRole{RuleOwnerModifier: roles, role: owners[role.Name]}
			do("cluster role", role.Name, func() error {
				return reconcileRole(reconciliation.ClusterRoleRuleOwner{ClusterRole: &role}, listed)
			})
		}
	}
	bindings := reconciliation.ClusterRoleBindingClientAdapter{Client: client.RbacV1().ClusterRoleBindings()}
	for _, list := range [][]rbacv1.ClusterRoleBinding{bootstrappolicy.ClusterRoleBindings(), bootstrappolicy.ControllerRoleBindings()} {
		for _, binding := range list {
			listed := &listedBinding{RoleBindingModifier: bindings, binding: subjects[binding.Name]}
			do("cluster role binding", binding.Name, func() error {
				return reconcileBinding(reconciliation.ClusterRoleBindingAdapter{ClusterRoleBinding: &binding}, listed)
			})
		}
	}
	return nil
}

// listedRole serves the first request for a role from a list.
type listedRole struct {
	reconciliation.RuleOwnerModifier
	role      reconciliation.RuleOwner // nil if the role is missing
	requested bool
}

// Get implements reconciliation.RuleOwnerModifier.
func (l *listedRole) Get(namespace, name string) (reconciliation.RuleOwner, error) {
	if l.requested {
		return l.RuleOwnerModifier.Get(namespace, name)
	}
	if l.requested = true; l.role == nil {
		return nil, apierrors.NewNotFound(rbacv1.Resource("clusterroles"), name)
	}
	return l.role, nil
}

// listedBinding is like listedRole, but for bindings.
type listedBinding struct {
	reconciliation.RoleBindingModifier
	binding   reconciliation.RoleBinding
	requested bool
}

// Get implements reconciliation.RoleBindingModifier.
func (l *listedBinding) Get(namespace, name string) (reconciliation.RoleBinding, error) {
	if l.requested {
		return l.RoleBindingModifier.Get(namespace, name)
	}
	if l.requested = true; l.binding == nil {
		return nil, apierrors.NewNotFound(rbacv1.Resource("clusterrolebindings"), name)
	}
	return l.binding, nil
}

// reconcileProjectPolicy reconciles the default roles of namespaces and their bindings.
func reconcileProjectPolicy(client kubernetes.Interface, do func(kind, name string, reconcile func() error)) {
	roles := reconciliation.RoleModifier{Client: client.RbacV1(), NamespaceClient: client.CoreV1().Namespaces()}
	for namespace, list := range bootstrappolicy.NamespaceRoles() {
		for _, role := range list {
			do("role", namespace+"/"+role.Name, func() error {
				return reconcileRole(reconciliation.RoleRuleOwner{Role: &role}, roles)
			})
		}
	}
	bindings := reconciliation.RoleBindingClientAdapter{Client: client.RbacV1(), NamespaceClient: client.CoreV1().Namespaces()}
	for namespace, list := range bootstrappolicy.NamespaceRoleBindings() {
		for _, binding := range list {
			do("role binding", namespace+"/"+binding.Name, func() error {
				return reconcileBinding(reconciliation.RoleBindingAdapter{RoleBinding: &binding}, bindings)
			})
		}
	}
}

func reconcileRole(role reconciliation.RuleOwner, client reconciliation.RuleOwnerModifier) error {
	_, err := (&reconciliation.ReconcileRoleOptions{Role: role, Client: client, Confirm: true}).Run()
	return err
}

func reconcileBinding(binding reconciliation.RoleBinding, client reconciliation.RoleBindingModifier) error {
	_, err := (&reconciliation.ReconcileRoleBindingOptions{RoleBinding: binding, Client: client, Confirm: true}).Run()
	return err
}
