package project

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	projectv1 "github.com/openshift/api/project/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
)

// Keeper gives every project the service accounts that builds and deployments use, with their roles, as often as they are missing, and
// lets a project that is being deleted go when nothing of ours is left to do for it.
//
// Source: OpenShift 3.11 Cluster Administration, 9.4 (managed service accounts and their roles) and 10.2.3 (local role bindings).
type Keeper struct {
	// Client is a connection with every right.
	Client *rest.Config
	// Accounts are the service accounts of each project (serviceAccountConfig.managedNames).
	Accounts []string

	client     kubernetes.Interface
	namespaces corelisters.NamespaceLister
	accounts   corelisters.ServiceAccountLister
}

// Name is the part's name.
func (k *Keeper) Name() string { return "projects" }

// Run keeps projects until ctx ends; ready is called when it knows them all.
func (k *Keeper) Run(ctx context.Context, ready func()) error {
	config := rest.CopyConfig(k.Client)
	config.QPS = -1 // few workers are the limit: of many new projects the last must not wait for minutes
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("connect for projects: %w", err)
	}
	k.client = client
	factory := informers.NewSharedInformerFactory(client, 0)
	k.namespaces, k.accounts = factory.Core().V1().Namespaces().Lister(), factory.Core().V1().ServiceAccounts().Lister()
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
	context.AfterFunc(ctx, queue.ShutDown)
	if _, err := factory.Core().V1().Namespaces().Informer().AddEventHandler(handler(func(object metav1.Object, _ bool) { queue.Add(object.GetName()) })); err != nil {
		return fmt.Errorf("follow projects: %w", err)
	}
	_, err = factory.Core().V1().ServiceAccounts().Informer().AddEventHandler(handler(func(object metav1.Object, gone bool) {
		if gone && slices.Contains(k.Accounts, object.GetName()) {
			queue.Add(object.GetNamespace())
		}
	}))
	if err != nil {
		return fmt.Errorf("follow service accounts: %w", err)
	}
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	for _, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return nil
		}
	}
	ready()
	var working sync.WaitGroup
	for range keepers {
		working.Go(func() { k.work(ctx, queue) })
	}
	working.Wait()
	return nil
}

// keepers is how many projects are reconciled at once.
const keepers = 4

// work reconciles the projects of the queue until it ends.
func (k *Keeper) work(ctx context.Context, queue workqueue.TypedRateLimitingInterface[string]) {
	for {
		name, stopped := queue.Get()
		if stopped {
			return
		}
		if err := k.Reconcile(ctx, name); err != nil {
			slog.Warn("keep project", "project", name, "error", err)
			queue.AddRateLimited(name)
		} else {
			queue.Forget(name)
		}
		queue.Done(name)
	}
}

// Reconcile brings one project to what it must have.
func (k *Keeper) Reconcile(ctx context.Context, name string) error {
	namespace, err := k.namespaces.Get(name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if namespace.DeletionTimestamp != nil {
		return k.release(ctx, namespace)
	}
	for _, account := range k.Accounts {
		if _, err := k.accounts.ServiceAccounts(name).Get(account); err == nil {
			continue
		}
		wanted := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}
		if _, err := k.client.CoreV1().ServiceAccounts(name).Create(ctx, wanted, metav1.CreateOptions{}); unexpected(err) {
			return fmt.Errorf("create service account %q: %w", account, err)
		}
	}
	return k.bind(ctx, namespace)
}

// unexpected leaves out what another one did at the same time.
func unexpected(err error) bool {
	return err != nil && !apierrors.IsAlreadyExists(err) && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) && !apierrors.IsNotFound(err)
}

// rolesAnnotation records that a project got its roles once: an administrator may take them away again.
const rolesAnnotation = "slipway.openshift.io/default-roles"

// bind gives a new project the roles of its service accounts, once.
func (k *Keeper) bind(ctx context.Context, namespace *corev1.Namespace) error {
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
		{"system:image-pullers", "system:image-puller", rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: serviceaccount.MakeNamespaceGroupName(namespace.Name)}},
		{"system:image-builders", "system:image-builder", account("builder")},
		{"system:deployers", "system:deployer", account("deployer")},
	} {
		binding := &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: grant.binding},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: grant.role},
			Subjects:   []rbacv1.Subject{grant.subject},
		}
		if _, err := k.client.RbacV1().RoleBindings(namespace.Name).Create(ctx, binding, metav1.CreateOptions{}); unexpected(err) {
			return fmt.Errorf("create role binding %q: %w", grant.binding, err)
		}
	}
	patch := fmt.Appendf(nil, `{"metadata":{"uid":%q,"annotations":{%q:"true"}}}`, namespace.UID, rolesAnnotation)
	_, err := k.client.CoreV1().Namespaces().Patch(ctx, namespace.Name, "application/merge-patch+json", patch, metav1.PatchOptions{})
	if unexpected(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("annotate project: %w", err)
	}
	return nil
}

// release takes our finalizer from a project whose content is gone: Kubernetes' own is removed last.
func (k *Keeper) release(ctx context.Context, namespace *corev1.Namespace) error {
	if !slices.Contains(namespace.Spec.Finalizers, projectv1.FinalizerOrigin) {
		return nil
	}
	released := namespace.DeepCopy()
	released.Spec.Finalizers = slices.DeleteFunc(released.Spec.Finalizers, func(f corev1.FinalizerName) bool { return f == projectv1.FinalizerOrigin })
	_, err := k.client.CoreV1().Namespaces().Finalize(ctx, released, metav1.UpdateOptions{})
	if unexpected(err) {
		return fmt.Errorf("release project: %w", err)
	}
	return nil
}
