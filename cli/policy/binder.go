package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	rbacclient "k8s.io/client-go/kubernetes/typed/rbac/v1"

	"github.com/slipway-platform/slipway/cli/objects"
)

// errNoTarget means that none of the role's bindings contains any of the subjects.
var errNoTarget = errors.New("unable to find target")

// binder adds subjects to a role's bindings, or removes subjects from bindings.
type binder struct {
	client        rbacclient.RbacV1Interface
	namespace     string // empty for cluster role bindings
	role          string // empty to remove subjects from bindings of every role
	local         bool   // the role is a Role in the namespace, not a ClusterRole
	binding       string // the binding's name; if empty, a binding is found or created
	users, groups []string
}

// subjects returns the users and groups as subjects. For the user name of a service account, it
// returns a ServiceAccount subject.
func (b *binder) subjects() (subjects []rbacv1.Subject) {
	for _, name := range b.users {
		if namespace, account, err := serviceaccount.SplitUsername(name); err == nil {
			subjects = append(subjects, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account})
			continue
		}
		subjects = append(subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name})
	}
	for _, name := range b.groups {
		subjects = append(subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: name})
	}
	return subjects
}

func (b *binder) ref() rbacv1.RoleRef {
	kind := "ClusterRole"
	if b.local {
		kind = "Role"
	}
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: b.role}
}

// change is a RoleBinding or ClusterRoleBinding with its desired contents.
type change struct {
	metav1.ObjectMeta
	ref      rbacv1.RoleRef
	subjects []rbacv1.Subject
	exists   bool
	// additions are the subjects that the change adds to the binding, and removals are the subjects
	// that it removes.
	additions, removals []rbacv1.Subject
}

// object returns the API object for a change. It is a ClusterRoleBinding if namespace is empty, and
// a RoleBinding otherwise.
func (c change) object(namespace string) runtime.Object {
	if namespace == "" {
		return &rbacv1.ClusterRoleBinding{ObjectMeta: c.ObjectMeta, RoleRef: c.ref, Subjects: c.subjects}
	}
	return &rbacv1.RoleBinding{ObjectMeta: c.ObjectMeta, RoleRef: c.ref, Subjects: c.subjects}
}

// listOf returns the changed bindings as a List for printers.
func listOf(changes []change, namespace string) *corev1.List {
	var all []runtime.Object
	for _, change := range changes {
		object := change.object(namespace)
		kind := "RoleBinding"
		if namespace == "" {
			kind = "ClusterRoleBinding"
		}
		object.GetObjectKind().SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind(kind))
		all = append(all, object)
	}
	return objects.ListOf(all)
}

// list returns the role bindings in the namespace, or the cluster role bindings if the namespace is
// empty.
func (b *binder) list(ctx context.Context) (all []change, err error) {
	if b.namespace == "" {
		list, err := b.client.ClusterRoleBindings().List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		for _, binding := range list.Items {
			all = append(all, change{ObjectMeta: binding.ObjectMeta, ref: binding.RoleRef, subjects: binding.Subjects, exists: true})
		}
		return all, nil
	}
	list, err := b.client.RoleBindings(b.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, binding := range list.Items {
		all = append(all, change{ObjectMeta: binding.ObjectMeta, ref: binding.RoleRef, subjects: binding.Subjects, exists: true})
	}
	return all, nil
}

// add returns the changed bindings that grant the role to the subjects. In order of precedence,
// these are the named binding, a binding of the role to all subjects, or a new binding for the
// missing subjects. As in OpenShift 3, a new binding has the name of the role, with a number if
// another binding has that name (admin, admin-0).
func (b *binder) add(ctx context.Context) ([]change, error) {
	all, err := b.list(ctx)
	if err != nil {
		return nil, err
	}
	inUse, missing := map[string]bool{}, b.subjects()
	for _, item := range all {
		inUse[item.Name] = true
		item.additions = slices.DeleteFunc(b.subjects(), func(s rbacv1.Subject) bool { return slices.Contains(item.subjects, s) })
		switch {
		case b.binding != "" && item.Name == b.binding:
			if item.ref != b.ref() {
				return nil, mismatch("rolebinding %s found for role %s, not %s", "rolebinding %s found for %q, not %q", item, b.ref())
			}
			item.subjects = slices.Concat(item.subjects, item.additions)
			return []change{item}, nil
		case b.binding == "" && item.ref == b.ref():
			if len(item.additions) == 0 {
				return []change{item}, nil
			}
			missing = slices.DeleteFunc(missing, func(s rbacv1.Subject) bool { return slices.Contains(item.subjects, s) })
		}
	}
	name := b.binding
	if name == "" {
		name = b.role
		for number := 0; inUse[name]; number++ {
			name = b.role + "-" + strconv.Itoa(number)
		}
	}
	created := change{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: b.namespace}, ref: b.ref(), subjects: missing, additions: missing}
	if len(missing) == 0 { // the subjects are distributed over several bindings
		return []change{{ObjectMeta: created.ObjectMeta, ref: created.ref, subjects: b.subjects(), exists: true}}, nil
	}
	return []change{created}, nil
}

// mismatch returns the error for a binding that refers to a different role or to a different kind
// of role.
func mismatch(names, kinds string, item change, ref rbacv1.RoleRef) error {
	if item.ref.Name != ref.Name {
		return fmt.Errorf(names, item.Name, item.ref.Name, ref.Name)
	}
	return fmt.Errorf(kinds, item.Name, item.ref.Kind, ref.Kind)
}

// remove removes the subjects from the role's bindings or, if no role is given, from all bindings.
// It returns the changed bindings. As in OpenShift 3, it also returns the role's unchanged
// bindings, so that -o prints them.
func (b *binder) remove(ctx context.Context) (changes []change, err error) {
	all, err := b.list(ctx)
	if err != nil {
		return nil, err
	}
	subjects, ok := b.subjects(), false
	for _, change := range all {
		if b.binding != "" && change.Name != b.binding {
			continue
		}
		ok = true
		if b.role != "" && change.ref != b.ref() {
			if b.binding != "" {
				return nil, mismatch("rolebinding %s contains role %s, instead of role %s", "rolebinding %s contains a role of kind %q, not %q", change, b.ref())
			}
			continue
		}
		rest := slices.DeleteFunc(slices.Clone(change.subjects), func(s rbacv1.Subject) bool { return slices.Contains(subjects, s) })
		if len(rest) == len(change.subjects) && b.role == "" {
			continue
		}
		change.removals = slices.DeleteFunc(change.subjects, func(s rbacv1.Subject) bool { return slices.Contains(rest, s) })
		change.subjects = rest
		changes = append(changes, change)
	}
	switch {
	case !ok && b.binding != "":
		return nil, fmt.Errorf("unable to locate RoleBinding %s for %s %q", b.binding, b.ref().Kind, b.role)
	case b.role != "" && !slices.ContainsFunc(changes, func(c change) bool { return len(c.removals) > 0 }):
		return nil, fmt.Errorf("%w %v", errNoTarget, slices.Concat(b.shortUsers(), b.groups))
	}
	return changes, nil
}

// shortUsers returns the names of the users. For a service account, it returns the short name that
// -z accepts.
func (b *binder) shortUsers() (names []string) {
	for _, name := range b.users {
		if _, account, err := serviceaccount.SplitUsername(name); err == nil {
			name = account
		}
		names = append(names, name)
	}
	return names
}

// apply stores changed bindings. It deletes a binding without subjects, unless it is a default
// binding, which the control plane would recreate.
func (b *binder) apply(ctx context.Context, changes []change) error {
	for _, change := range changes {
		if len(change.additions) == 0 && len(change.removals) == 0 {
			continue
		}
		if err := b.write(ctx, change); err != nil && !(apierrors.IsNotFound(err) && len(change.removals) > 0) {
			return err
		}
	}
	return nil
}

// write creates, updates or deletes one binding.
func (b *binder) write(ctx context.Context, item change) (err error) {
	empty := len(item.subjects) == 0 && item.Annotations[rbacv1.AutoUpdateAnnotationKey] == ""
	switch object := item.object(b.namespace).(type) {
	case *rbacv1.ClusterRoleBinding:
		switch {
		case empty:
			return b.client.ClusterRoleBindings().Delete(ctx, item.Name, metav1.DeleteOptions{})
		case item.exists:
			_, err = b.client.ClusterRoleBindings().Update(ctx, object, metav1.UpdateOptions{})
		default:
			_, err = b.client.ClusterRoleBindings().Create(ctx, object, metav1.CreateOptions{})
		}
	case *rbacv1.RoleBinding:
		switch {
		case empty:
			return b.client.RoleBindings(b.namespace).Delete(ctx, item.Name, metav1.DeleteOptions{})
		case item.exists:
			_, err = b.client.RoleBindings(b.namespace).Update(ctx, object, metav1.UpdateOptions{})
		default:
			_, err = b.client.RoleBindings(b.namespace).Create(ctx, object, metav1.CreateOptions{})
		}
	}
	return err
}
