package project

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"
	rbaclisters "k8s.io/client-go/listers/rbac/v1"
	"k8s.io/client-go/tools/cache"
)

// observer keeps the index up to date. It uses the API server's informers for namespaces, roles and
// bindings.
type observer struct {
	index        *index
	refreshMu    sync.Mutex // serializes refresh, so that the latest result is kept
	namespaces   corelisters.NamespaceLister
	bindings     rbaclisters.RoleBindingLister
	roles        rbaclisters.RoleLister
	clusterRoles rbaclisters.ClusterRoleLister
	synced       []cache.InformerSynced
}

// observe returns an observer that updates its index when the informers' caches change. The server
// fills the caches when it starts the informers.
func observe(factory informers.SharedInformerFactory) (*observer, error) {
	namespaces, rbac := factory.Core().V1().Namespaces(), factory.Rbac().V1()
	o := &observer{
		index: newIndex(), namespaces: namespaces.Lister(), bindings: rbac.RoleBindings().Lister(),
		roles: rbac.Roles().Lister(), clusterRoles: rbac.ClusterRoles().Lister(),
	}
	for _, source := range []struct {
		informer cache.SharedIndexInformer
		changed  func(metav1.Object, bool)
	}{
		{namespaces.Informer(), o.namespaceChanged},
		{rbac.RoleBindings().Informer(), func(object metav1.Object, _ bool) { o.refresh(object.GetNamespace(), version(object)) }},
		{rbac.Roles().Informer(), func(object metav1.Object, _ bool) { o.refresh(object.GetNamespace(), version(object)) }},
		{rbac.ClusterRoles().Informer(), o.clusterRoleChanged},
	} {
		registration, err := source.informer.AddEventHandler(handler(source.changed))
		if err != nil {
			return nil, fmt.Errorf("watch projects: %w", err)
		}
		o.synced = append(o.synced, registration.HasSynced)
	}
	return o, nil
}

// handler returns an event handler that calls changed with the object and a flag that reports
// whether the object was deleted.
func handler(changed func(metav1.Object, bool)) cache.ResourceEventHandler {
	call := func(object any, deleted bool) {
		if tombstone, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = tombstone.Obj
		}
		if meta, ok := object.(metav1.Object); ok {
			changed(meta, deleted)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { call(object, false) },
		UpdateFunc: func(_, object any) { call(object, false) },
		DeleteFunc: func(object any) { call(object, true) },
	}
}

// version returns an object's resourceVersion as a number, or 0 if it is not a number.
func version(object metav1.Object) uint64 {
	number, err := strconv.ParseUint(object.GetResourceVersion(), 10, 64)
	if err != nil {
		return 0
	}
	return number
}

// ready waits until the index contains all existing namespaces.
func (o *observer) ready(ctx context.Context) error {
	if !cache.WaitForCacheSync(ctx.Done(), o.synced...) {
		return fmt.Errorf("fill project index: %w", context.Cause(ctx))
	}
	o.index.reset()
	return nil
}

func (o *observer) namespaceChanged(object metav1.Object, deleted bool) {
	if deleted {
		o.index.remove(object.GetName(), version(object))
		return
	}
	o.refresh(object.GetName(), version(object))
}

// clusterRoleChanged refreshes the namespaces whose role bindings refer to a cluster role.
func (o *observer) clusterRoleChanged(object metav1.Object, _ bool) {
	bindings, err := o.bindings.List(labels.Everything())
	if err != nil {
		return // listing a cache never fails
	}
	seen := map[string]bool{}
	for _, binding := range bindings {
		if binding.RoleRef.Kind == "ClusterRole" && binding.RoleRef.Name == object.GetName() && !seen[binding.Namespace] {
			seen[binding.Namespace] = true
			o.refresh(binding.Namespace, version(object))
		}
	}
}

// refresh updates the viewers of a namespace.
func (o *observer) refresh(name string, version uint64) {
	o.refreshMu.Lock()
	defer o.refreshMu.Unlock()
	namespace, err := o.namespaces.Get(name)
	if err != nil {
		return // the namespace is not in the cache yet, or was deleted: its own event follows
	}
	bindings, err := o.bindings.RoleBindings(name).List(labels.Everything())
	if err != nil {
		return
	}
	viewers := viewers{}
	for _, binding := range bindings {
		if !slices.ContainsFunc(o.rules(binding), func(rule rbacv1.PolicyRule) bool { return shows(rule, name) }) {
			continue
		}
		for _, s := range binding.Subjects {
			if s, ok := subjectOf(s, name); ok {
				viewers[s] = struct{}{}
			}
		}
	}
	o.index.set(namespace, viewers, version)
}

// rules returns the rules of a binding's role, or nil if the role does not exist.
func (o *observer) rules(binding *rbacv1.RoleBinding) []rbacv1.PolicyRule {
	if binding.RoleRef.Kind == "ClusterRole" {
		if role, err := o.clusterRoles.Get(binding.RoleRef.Name); err == nil {
			return role.Rules
		}
		return nil
	}
	if role, err := o.roles.Roles(binding.Namespace).Get(binding.RoleRef.Name); err == nil {
		return role.Rules
	}
	return nil
}

// shows reports whether a rule permits get requests for the namespace. This permission makes a
// project visible.
func shows(rule rbacv1.PolicyRule, namespace string) bool {
	has := func(list []string, want string) bool {
		return slices.Contains(list, want) || slices.Contains(list, rbacv1.VerbAll)
	}
	return has(rule.Verbs, "get") && has(rule.APIGroups, corev1.GroupName) && has(rule.Resources, "namespaces") &&
		(len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, namespace))
}

func subjectOf(bound rbacv1.Subject, namespace string) (subject, bool) {
	switch bound.Kind {
	case rbacv1.UserKind:
		return userSubject(bound.Name), true
	case rbacv1.GroupKind:
		return groupSubject(bound.Name), true
	case rbacv1.ServiceAccountKind:
		if bound.Namespace != "" {
			namespace = bound.Namespace
		}
		return userSubject(serviceaccount.MakeUsername(namespace, bound.Name)), true
	}
	return "", false
}
