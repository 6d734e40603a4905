package authorization

import (
	"strings"

	authorizationv1 "github.com/openshift/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
)

// Subject kinds that exist in OpenShift but not in RBAC: users and groups whose names are invalid
// for User and Group objects.
const (
	systemUserKind  = "SystemUser"
	systemGroupKind = "SystemGroup"
)

func fromRules(rules []rbacv1.PolicyRule) []authorizationv1.PolicyRule {
	converted := make([]authorizationv1.PolicyRule, 0, len(rules))
	for _, rule := range rules {
		converted = append(converted, authorizationv1.PolicyRule{
			Verbs: rule.Verbs, APIGroups: rule.APIGroups, Resources: rule.Resources, ResourceNames: rule.ResourceNames,
			NonResourceURLsSlice: rule.NonResourceURLs,
		})
	}
	return converted
}

// toRules is the inverse of fromRules. It rejects attribute restrictions, which RBAC does not
// support. As in OpenShift 3, a rule without API groups applies to the core group, unless the rule
// allows all verbs on all resources. In that case, it applies to all groups.
func toRules(rules []authorizationv1.PolicyRule) ([]rbacv1.PolicyRule, field.ErrorList) {
	var errs field.ErrorList
	converted := make([]rbacv1.PolicyRule, 0, len(rules))
	for i, rule := range rules {
		if len(rule.AttributeRestrictions.Raw) > 0 && string(rule.AttributeRestrictions.Raw) != "null" {
			errs = append(errs, field.Invalid(field.NewPath("rules").Index(i).Child("attributeRestrictions"), string(rule.AttributeRestrictions.Raw),
				"is not supported; remove it"))
		}
		groups := rule.APIGroups
		switch {
		case len(groups) > 0 || len(rule.Resources) == 0:
		case isAll(rule.Verbs) && isAll(rule.Resources) && len(rule.ResourceNames) == 0:
			groups = []string{rbacv1.APIGroupAll}
		default:
			groups = []string{""}
		}
		converted = append(converted, rbacv1.PolicyRule{
			Verbs: rule.Verbs, APIGroups: groups, Resources: rule.Resources, ResourceNames: rule.ResourceNames,
			NonResourceURLs: rule.NonResourceURLsSlice,
		})
	}
	return converted, errs
}

func isAll(names []string) bool { return len(names) == 1 && names[0] == "*" }

// fromSubjects returns a binding's subjects as references and as OpenShift's lists of user names
// and group names.
func fromSubjects(subjects []rbacv1.Subject, namespace string) (references []corev1.ObjectReference, users, groups []string) {
	references = []corev1.ObjectReference{}
	for _, s := range subjects {
		reference := corev1.ObjectReference{Kind: s.Kind, Name: s.Name}
		switch s.Kind {
		case rbacv1.UserKind:
			if isSystem(s.Name) {
				reference.Kind = systemUserKind
			}
			users = append(users, s.Name)
		case rbacv1.GroupKind:
			if isSystem(s.Name) {
				reference.Kind = systemGroupKind
			}
			groups = append(groups, s.Name)
		case rbacv1.ServiceAccountKind:
			reference.Namespace = s.Namespace
			if s.Namespace == "" {
				reference.Namespace = namespace
			}
			users = append(users, serviceaccount.MakeUsername(reference.Namespace, s.Name))
		}
		references = append(references, reference)
	}
	return references, users, groups
}

// isSystem reports whether a name is invalid for a User or Group object.
func isSystem(name string) bool {
	return strings.ContainsAny(name, ":/%") || name == "." || name == ".." || name == "~"
}

// toSubjects is the inverse of fromSubjects. As in OpenShift, the name lists take precedence over
// the references, unless both lists are missing.
func toSubjects(references []corev1.ObjectReference, users, groups []string,
	namespace string) ([]rbacv1.Subject, field.ErrorList) {
	if users != nil || groups != nil {
		references = nil
		for _, name := range users {
			if ns, account, err := serviceaccount.SplitUsername(name); err == nil {
				references = append(references, corev1.ObjectReference{Kind: rbacv1.ServiceAccountKind, Namespace: ns, Name: account})
				continue
			}
			references = append(references, corev1.ObjectReference{Kind: rbacv1.UserKind, Name: name})
		}
		for _, name := range groups {
			references = append(references, corev1.ObjectReference{Kind: rbacv1.GroupKind, Name: name})
		}
	}
	var errs field.ErrorList
	var subjects []rbacv1.Subject
	for i, reference := range references {
		at := field.NewPath("subjects").Index(i)
		if reference.Name == "" {
			errs = append(errs, field.Required(at.Child("name"), "name the subject"))
		}
		switch reference.Kind {
		case rbacv1.UserKind, systemUserKind:
			subjects = append(subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: reference.Name})
		case rbacv1.GroupKind, systemGroupKind:
			subjects = append(subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: reference.Name})
		case rbacv1.ServiceAccountKind:
			if reference.Namespace == "" {
				reference.Namespace = namespace
			}
			subjects = append(subjects, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: reference.Namespace, Name: reference.Name})
		default:
			errs = append(errs, field.NotSupported(at.Child("kind"), reference.Kind,
				[]string{rbacv1.UserKind, rbacv1.GroupKind, rbacv1.ServiceAccountKind, systemUserKind, systemGroupKind}))
		}
	}
	return subjects, errs
}

func fromRef(ref rbacv1.RoleRef, namespace string) corev1.ObjectReference {
	if ref.Kind == "ClusterRole" {
		namespace = ""
	}
	return corev1.ObjectReference{Kind: ref.Kind, Name: ref.Name, Namespace: namespace}
}

// toRef is the inverse of fromRef: a reference without a namespace refers to a cluster role.
func toRef(ref corev1.ObjectReference, namespace string) (rbacv1.RoleRef, field.ErrorList) {
	at := field.NewPath("roleRef")
	switch {
	case ref.Name == "":
		return rbacv1.RoleRef{}, field.ErrorList{field.Required(at.Child("name"), "name the role")}
	case ref.Namespace == "":
		return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: ref.Name}, nil
	case ref.Namespace != namespace:
		return rbacv1.RoleRef{}, field.ErrorList{field.Invalid(at.Child("namespace"), ref.Namespace,
			"must be the binding's own namespace, or empty for a cluster role")}
	}
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: ref.Name}, nil
}

func fromRole(r *rbacv1.Role) *authorizationv1.Role {
	return &authorizationv1.Role{ObjectMeta: *r.ObjectMeta.DeepCopy(), Rules: fromRules(r.Rules)}
}

func toRole(r *authorizationv1.Role) (*rbacv1.Role, field.ErrorList) {
	rules, errs := toRules(r.Rules)
	return &rbacv1.Role{ObjectMeta: *r.ObjectMeta.DeepCopy(), Rules: rules}, errs
}

func fromClusterRole(r *rbacv1.ClusterRole) *authorizationv1.ClusterRole {
	return &authorizationv1.ClusterRole{ObjectMeta: *r.ObjectMeta.DeepCopy(), Rules: fromRules(r.Rules), AggregationRule: r.AggregationRule.DeepCopy()}
}

func toClusterRole(r *authorizationv1.ClusterRole) (*rbacv1.ClusterRole, field.ErrorList) {
	rules, errs := toRules(r.Rules)
	return &rbacv1.ClusterRole{ObjectMeta: *r.ObjectMeta.DeepCopy(), Rules: rules, AggregationRule: r.AggregationRule.DeepCopy()}, errs
}

func fromRoleBinding(b *rbacv1.RoleBinding) *authorizationv1.RoleBinding {
	binding := &authorizationv1.RoleBinding{ObjectMeta: *b.ObjectMeta.DeepCopy(), RoleRef: fromRef(b.RoleRef, b.Namespace)}
	users, groups := []string(nil), []string(nil)
	binding.Subjects, users, groups = fromSubjects(b.Subjects, b.Namespace)
	binding.UserNames, binding.GroupNames = users, groups
	return binding
}

func toRoleBinding(b *authorizationv1.RoleBinding) (*rbacv1.RoleBinding, field.ErrorList) {
	subjects, errs := toSubjects(b.Subjects, b.UserNames, b.GroupNames, b.Namespace)
	ref, refErrs := toRef(b.RoleRef, b.Namespace)
	return &rbacv1.RoleBinding{ObjectMeta: *b.ObjectMeta.DeepCopy(), Subjects: subjects, RoleRef: ref}, append(errs, refErrs...)
}

func fromClusterRoleBinding(b *rbacv1.ClusterRoleBinding) *authorizationv1.ClusterRoleBinding {
	binding := &authorizationv1.ClusterRoleBinding{ObjectMeta: *b.ObjectMeta.DeepCopy(), RoleRef: fromRef(b.RoleRef, "")}
	users, groups := []string(nil), []string(nil)
	binding.Subjects, users, groups = fromSubjects(b.Subjects, "")
	binding.UserNames, binding.GroupNames = users, groups
	return binding
}

func toClusterRoleBinding(b *authorizationv1.ClusterRoleBinding) (*rbacv1.ClusterRoleBinding, field.ErrorList) {
	subjects, errs := toSubjects(b.Subjects, b.UserNames, b.GroupNames, "")
	ref, refErrs := toRef(b.RoleRef, "")
	return &rbacv1.ClusterRoleBinding{ObjectMeta: *b.ObjectMeta.DeepCopy(), Subjects: subjects, RoleRef: ref}, append(errs, refErrs...)
}
