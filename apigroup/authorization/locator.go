package authorization

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/informers"
	rbaclisters "k8s.io/client-go/listers/rbac/v1"
	"k8s.io/component-helpers/auth/rbac/validation"
)

// locator uses the API server's caches to find the bindings that apply to a namespace.
type locator struct {
	roles           rbaclisters.RoleLister
	bindings        rbaclisters.RoleBindingLister
	clusterRoles    rbaclisters.ClusterRoleLister
	clusterBindings rbaclisters.ClusterRoleBindingLister
}

func newLocator(factory informers.SharedInformerFactory) *locator {
	rbac := factory.Rbac().V1()
	return &locator{rbac.Roles().Lister(), rbac.RoleBindings().Lister(), rbac.ClusterRoles().Lister(), rbac.ClusterRoleBindings().Lister()}
}

// each calls visit with the subjects and the rules of every binding that applies to a namespace. If
// the namespace is empty, only cluster role bindings apply. missing contains an error for each
// binding that refers to a missing role.
func (l *locator) each(namespace string, visit func(subjects []rbacv1.Subject, rules []rbacv1.PolicyRule)) (missing []error, err error) {
	clusterBindings, err := l.clusterBindings.List(labels.Everything())
	if err != nil {
		return nil, err
	}
	for _, binding := range clusterBindings {
		role, err := l.clusterRoles.Get(binding.RoleRef.Name)
		if apierrors.IsNotFound(err) {
			missing = append(missing, err)
			continue
		}
		visit(binding.Subjects, role.Rules)
	}
	if namespace == "" {
		return missing, nil
	}
	bindings, err := l.bindings.RoleBindings(namespace).List(labels.Everything())
	if err != nil {
		return nil, err
	}
	for _, binding := range bindings {
		rules, err := l.rules(binding)
		if apierrors.IsNotFound(err) {
			missing = append(missing, err)
			continue
		}
		visit(withNamespace(binding.Subjects, namespace), rules)
	}
	return missing, nil
}

func (l *locator) rules(binding *rbacv1.RoleBinding) ([]rbacv1.PolicyRule, error) {
	if binding.RoleRef.Kind == "ClusterRole" {
		role, err := l.clusterRoles.Get(binding.RoleRef.Name)
		if err != nil {
			return nil, err
		}
		return role.Rules, nil
	}
	role, err := l.roles.Roles(binding.Namespace).Get(binding.RoleRef.Name)
	if err != nil {
		return nil, err
	}
	return role.Rules, nil
}

// withNamespace returns a copy of the subjects in which the binding's namespace is the default
// namespace of service accounts.
func withNamespace(subjects []rbacv1.Subject, namespace string) []rbacv1.Subject {
	subjects = slices.Clone(subjects)
	for i := range subjects {
		if subjects[i].Kind == rbacv1.ServiceAccountKind && subjects[i].Namespace == "" {
			subjects[i].Namespace = namespace
		}
	}
	return subjects
}

// whoCan returns the users and groups that can perform an action, sorted by name.
func (l *locator) whoCan(namespace string, action rbacv1.PolicyRule) (users, groups []string, missing []error, err error) {
	missing, err = l.each(namespace, func(subjects []rbacv1.Subject, rules []rbacv1.PolicyRule) {
		if covered, _ := validation.Covers(rules, []rbacv1.PolicyRule{action}); !covered {
			return
		}
		for _, s := range subjects {
			switch s.Kind {
			case rbacv1.UserKind:
				users = append(users, s.Name)
			case rbacv1.GroupKind:
				groups = append(groups, s.Name)
			case rbacv1.ServiceAccountKind:
				users = append(users, serviceaccount.MakeUsername(s.Namespace, s.Name))
			}
		}
	})
	groups = append(groups, user.SystemPrivilegedGroup) // the group requires no role
	slices.Sort(users)
	slices.Sort(groups)
	return slices.Compact(users), slices.Compact(groups), missing, err
}

// rulesFor returns the rules that apply to a user in a namespace.
func (l *locator) rulesFor(namespace string, u user.Info) (rules []rbacv1.PolicyRule, missing []error, err error) {
	missing, err = l.each(namespace, func(subjects []rbacv1.Subject, granted []rbacv1.PolicyRule) {
		if slices.ContainsFunc(subjects, func(s rbacv1.Subject) bool { return matches(s, u) }) {
			rules = append(rules, granted...)
		}
	})
	if slices.Contains(u.GetGroups(), user.SystemPrivilegedGroup) {
		rules = append(rules, rbacv1.PolicyRule{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}},
			rbacv1.PolicyRule{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}})
	}
	return rules, missing, err
}

func matches(s rbacv1.Subject, u user.Info) bool {
	switch s.Kind {
	case rbacv1.UserKind:
		return s.Name == u.GetName()
	case rbacv1.GroupKind:
		return slices.Contains(u.GetGroups(), s.Name)
	case rbacv1.ServiceAccountKind:
		return serviceaccount.MakeUsername(s.Namespace, s.Name) == u.GetName()
	}
	return false
}
