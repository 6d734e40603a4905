package project

import (
	"context"
	"fmt"
	"slices"
	"time"

	projectv1 "github.com/openshift/api/project/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/slipway-platform/slipway/controller"
)

// Controller creates a project's missing service accounts for builds and deployments, and binds the
// service accounts to their roles. It removes Slipway's finalizer from projects that are being
// deleted.
//
// Source: OpenShift 3.11 Cluster Administration, 9.4 (managed service accounts and their roles) and
// 10.2.3 (local role bindings).
type Controller struct {
	// Deps provides the shared clients and caches.
	Deps *controller.Deps
	// Accounts lists the names of the service accounts that the controller creates in each project
	// (serviceAccountConfig.managedNames).
	Accounts []string

	client     kubernetes.Interface
	namespaces corelisters.NamespaceLister
	accounts   corelisters.ServiceAccountLister
}

// Name returns the component's name.
func (c *Controller) Name() string { return "projects" }

// Run reconciles projects until ctx is done. It calls ready when its caches have synced.
func (c *Controller) Run(ctx context.Context, ready func()) error {
	c.client = c.Deps.Kube
	manager := controller.Manager{c.controller()}
	c.Deps.Start()
	return manager.Run(ctx, ready)
}

// controller returns the project controller. Its keys are namespace names.
func (c *Controller) controller() controller.Controller {
	core := c.Deps.Informers.Core().V1()
	namespaces, accounts := core.Namespaces(), core.ServiceAccounts()
	c.namespaces, c.accounts = namespaces.Lister(), accounts.Lister()
	return controller.Controller{
		Name: "projects", Workers: workers, MinBackoff: minBackoff,
		Watches: []controller.Watch{
			{Informer: namespaces.Informer()},
			{Informer: accounts.Informer(), Keys: c.namespaceOfDeleted},
		},
		Reconcile: func(ctx context.Context, key controller.Key) error { return c.Reconcile(ctx, key.Name) },
	}
}

const (
	// workers is the number of projects that are reconciled at the same time.
	workers = 4
	// minBackoff is short, because most errors are conflicts with other clients' updates.
	minBackoff = 5 * time.Millisecond
)

// namespaceOfDeleted returns the key of a service account's namespace if every project must have
// the account but the cache no longer contains it. Otherwise, it returns no key.
func (c *Controller) namespaceOfDeleted(object any) []controller.Key {
	account, ok := object.(*corev1.ServiceAccount)
	if !ok || !slices.Contains(c.Accounts, account.Name) {
		return nil
	}
	if _, err := c.accounts.ServiceAccounts(account.Namespace).Get(account.Name); err == nil {
		return nil
	}
	return []controller.Key{{Name: account.Namespace}}
}

// Reconcile creates a project's missing service accounts and role bindings, or removes Slipway's
// finalizer from a project that is being deleted.
func (c *Controller) Reconcile(ctx context.Context, name string) error {
	namespace, err := c.namespaces.Get(name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if namespace.DeletionTimestamp != nil {
		return c.release(ctx, namespace)
	}
	for _, account := range c.Accounts {
		if _, err := c.accounts.ServiceAccounts(name).Get(account); err == nil {
			continue
		}
		desired := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}
		if _, err := c.client.CoreV1().ServiceAccounts(name).Create(ctx, desired, metav1.CreateOptions{}); unexpected(err) {
			return fmt.Errorf("create service account %q: %w", account, err)
		}
	}
	return c.bind(ctx, namespace)
}

// unexpected reports whether err was caused by anything other than a race with another client or
// with a deletion.
func unexpected(err error) bool {
	return err != nil && !apierrors.IsAlreadyExists(err) && !apierrors.IsNotFound(err) &&
		!apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// rolesAnnotation records that a project's role bindings have been created. They are created only
// once, so that an administrator can remove them.
const rolesAnnotation = "slipway.openshift.io/default-roles"

// bind creates a project's role bindings, unless an annotation records that they have already been
// created.
func (c *Controller) bind(ctx context.Context, namespace *corev1.Namespace) error {
	if namespace.Annotations[rolesAnnotation] == "true" {
		return nil
	}
	account := func(name string) rbacv1.Subject {
		return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace.Name, Name: name}
	}
	for _, grant := range []struct {
		binding, role string
		subject       rbacv1.Subject
	}{
		{"system:image-pullers", "system:image-puller", rbacv1.Subject{
			APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: serviceaccount.MakeNamespaceGroupName(namespace.Name),
		}},
		{"system:image-builders", "system:image-builder", account("builder")},
		{"system:deployers", "system:deployer", account("deployer")},
	} {
		binding := &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: grant.binding},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: grant.role},
			Subjects:   []rbacv1.Subject{grant.subject},
		}
		if _, err := c.client.RbacV1().RoleBindings(namespace.Name).Create(ctx, binding, metav1.CreateOptions{}); unexpected(err) {
			return fmt.Errorf("create role binding %q: %w", grant.binding, err)
		}
	}
	patch := fmt.Appendf(nil, `{"metadata":{"uid":%q,"annotations":{%q:"true"}}}`, namespace.UID, rolesAnnotation)
	_, err := c.client.CoreV1().Namespaces().Patch(ctx, namespace.Name, "application/merge-patch+json", patch, metav1.PatchOptions{})
	if unexpected(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("annotate project: %w", err)
	}
	return nil
}

// release removes Slipway's finalizer from a project. Kubernetes removes its own finalizer last.
func (c *Controller) release(ctx context.Context, namespace *corev1.Namespace) error {
	if !slices.Contains(namespace.Spec.Finalizers, projectv1.FinalizerOrigin) {
		return nil
	}
	finalized := namespace.DeepCopy()
	finalized.Spec.Finalizers = slices.DeleteFunc(finalized.Spec.Finalizers, func(f corev1.FinalizerName) bool {
		return f == projectv1.FinalizerOrigin
	})
	_, err := c.client.CoreV1().Namespaces().Finalize(ctx, finalized, metav1.UpdateOptions{})
	if unexpected(err) {
		return fmt.Errorf("remove finalizer of project: %w", err)
	}
	return nil
}
