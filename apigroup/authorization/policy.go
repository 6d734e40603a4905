package authorization

import (
	"slices"
	"strings"

	authorizationv1 "github.com/openshift/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	rbacclient "k8s.io/client-go/kubernetes/typed/rbac/v1"

	"github.com/slipway-platform/slipway/apiserver"
)

// convert applies from to each item of a list.
func convert[O, R any](items []R, from func(*R) *O) []O {
	converted := make([]O, 0, len(items)) // encodes an empty list as [] instead of null
	for i := range items {
		converted = append(converted, *from(&items[i]))
	}
	return converted
}

// Constructors of the four resources. Each resource is a view of the RBAC resource with the same
// name.

func newRoles(deps apiserver.Deps) (rest.Storage, error) {
	return &view[*authorizationv1.Role, *rbacv1.Role, *rbacv1.RoleList]{
		TableConvertor: apiserver.Table[*authorizationv1.Role](nil),
		loopback:       deps.Loopback, kind: "Role", singular: "role", namespaced: true,
		open: func(c rbacclient.RbacV1Interface, namespace string) client[*rbacv1.Role, *rbacv1.RoleList] {
			return c.Roles(namespace)
		},
		from: fromRole, to: toRole,
		list: func(source *rbacv1.RoleList) runtime.Object {
			return &authorizationv1.RoleList{ListMeta: source.ListMeta, Items: convert(source.Items, fromRole)}
		},
		empty: func() (runtime.Object, runtime.Object) { return &authorizationv1.Role{}, &authorizationv1.RoleList{} },
	}, nil
}

func newClusterRoles(deps apiserver.Deps) (rest.Storage, error) {
	return &view[*authorizationv1.ClusterRole, *rbacv1.ClusterRole, *rbacv1.ClusterRoleList]{
		TableConvertor: apiserver.Table[*authorizationv1.ClusterRole](nil),
		loopback:       deps.Loopback, kind: "ClusterRole", singular: "clusterrole",
		open: func(c rbacclient.RbacV1Interface, _ string) client[*rbacv1.ClusterRole, *rbacv1.ClusterRoleList] {
			return c.ClusterRoles()
		},
		from: fromClusterRole, to: toClusterRole,
		list: func(source *rbacv1.ClusterRoleList) runtime.Object {
			return &authorizationv1.ClusterRoleList{ListMeta: source.ListMeta, Items: convert(source.Items, fromClusterRole)}
		},
		empty: func() (runtime.Object, runtime.Object) {
			return &authorizationv1.ClusterRole{}, &authorizationv1.ClusterRoleList{}
		},
	}, nil
}

func newRoleBindings(deps apiserver.Deps) (rest.Storage, error) {
	return &view[*authorizationv1.RoleBinding, *rbacv1.RoleBinding, *rbacv1.RoleBindingList]{
		TableConvertor: apiserver.Table(bindingColumns(func(b *authorizationv1.RoleBinding) bound { return bound{b.RoleRef, b.Subjects} })),
		loopback:       deps.Loopback, kind: "RoleBinding", singular: "rolebinding", namespaced: true,
		open: func(c rbacclient.RbacV1Interface, namespace string) client[*rbacv1.RoleBinding, *rbacv1.RoleBindingList] {
			return c.RoleBindings(namespace)
		},
		from: fromRoleBinding, to: toRoleBinding,
		list: func(source *rbacv1.RoleBindingList) runtime.Object {
			return &authorizationv1.RoleBindingList{ListMeta: source.ListMeta, Items: convert(source.Items, fromRoleBinding)}
		},
		empty: func() (runtime.Object, runtime.Object) {
			return &authorizationv1.RoleBinding{}, &authorizationv1.RoleBindingList{}
		},
	}, nil
}

func newClusterRoleBindings(deps apiserver.Deps) (rest.Storage, error) {
	return &view[*authorizationv1.ClusterRoleBinding, *rbacv1.ClusterRoleBinding, *rbacv1.ClusterRoleBindingList]{
		TableConvertor: apiserver.Table(bindingColumns(func(b *authorizationv1.ClusterRoleBinding) bound { return bound{b.RoleRef, b.Subjects} })),
		loopback:       deps.Loopback, kind: "ClusterRoleBinding", singular: "clusterrolebinding",
		open: func(c rbacclient.RbacV1Interface, _ string) client[*rbacv1.ClusterRoleBinding, *rbacv1.ClusterRoleBindingList] {
			return c.ClusterRoleBindings()
		},
		from: fromClusterRoleBinding, to: toClusterRoleBinding,
		list: func(source *rbacv1.ClusterRoleBindingList) runtime.Object {
			return &authorizationv1.ClusterRoleBindingList{ListMeta: source.ListMeta, Items: convert(source.Items, fromClusterRoleBinding)}
		},
		empty: func() (runtime.Object, runtime.Object) {
			return &authorizationv1.ClusterRoleBinding{}, &authorizationv1.ClusterRoleBindingList{}
		},
	}, nil
}

// bound holds the role and the subjects of a role binding or cluster role binding.
type bound struct {
	role     corev1.ObjectReference
	subjects []corev1.ObjectReference
}

// bindingColumns returns the columns of `oc get rolebindings` in OpenShift 3.
func bindingColumns[O apiserver.Object](of func(O) bound) []apiserver.Column[O] {
	names := func(kinds ...string) func(O) any {
		return func(object O) any {
			var subjects []string
			for _, subject := range of(object).subjects {
				name := subject.Name
				if subject.Namespace != "" && subject.Namespace != object.GetNamespace() {
					name = subject.Namespace + "/" + name
				}
				if slices.Contains(kinds, subject.Kind) {
					subjects = append(subjects, name)
				}
			}
			return strings.Join(subjects, ", ")
		}
	}
	return []apiserver.Column[O]{
		{Name: "Role", Description: "The role that is bound", Value: func(object O) any {
			role := of(object).role
			return role.Namespace + "/" + role.Name
		}},
		{Name: "Users", Description: "Users that have the role", Value: names(rbacv1.UserKind, systemUserKind)},
		{Name: "Groups", Description: "Groups that have the role", Value: names(rbacv1.GroupKind, systemGroupKind)},
		{Name: "Service Accounts", Description: "Service accounts that have the role", Value: names(rbacv1.ServiceAccountKind)},
	}
}
