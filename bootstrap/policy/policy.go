// Package policy contains, as data, the cluster roles and cluster role bindings that exist in every
// new cluster.
//
// Source: OpenShift Container Platform 3.9 Architecture, 4.2.4 (the rules of admin and basic-user),
// and 3.11 Cluster Administration, chapter 10 (the bindings). If these documents do not list a
// role's rules, the rules are the same as in OpenShift 3.11.
package policy

import (
	"bufio"
	_ "embed"
	"fmt"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

//go:embed roles.txt
var rolesText string

//go:embed bindings.txt
var bindingsText string

// Annotations of default roles.
const (
	descriptionAnnotation = "openshift.io/description"
	systemOnlyAnnotation  = "authorization.openshift.io/system-only"
)

// protectAnnotation, with the value "true", protects a default object from reconciliation. The
// annotation rbac.authorization.kubernetes.io/autoupdate: "false" does the same for roles and
// bindings.
const protectAnnotation = "openshift.io/reconcile-protect"

// Protected reports whether an administrator has used protectAnnotation to exclude a default object
// from reconciliation.
func Protected(object metav1.Object) bool {
	return object.GetAnnotations()[protectAnnotation] == "true"
}

// projectRoles returns Kubernetes' roles for project members, with OpenShift's descriptions.
// OpenShift's rules are aggregated into these roles. Kubernetes sets the roles' labels; see
// AllRoles.
func projectRoles() []rbacv1.ClusterRole {
	var roles []rbacv1.ClusterRole
	for _, role := range []struct{ name, text string }{
		{"admin", "A user that has edit rights within the project and can change the project's membership."},
		{"edit", "A user that can create and edit most objects in a project, but can not update the project's membership."},
		{"view", "A user who can view but not edit any resources within the project. They can not view secrets or membership."},
	} {
		result := newRole(role.name)
		result.Annotations[descriptionAnnotation] = role.text
		result.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{
			{MatchLabels: map[string]string{"rbac.authorization.k8s.io/aggregate-to-" + role.name: "true"}},
		}}
		roles = append(roles, result)
	}
	return roles
}

func newRole(name string) rbacv1.ClusterRole {
	return rbacv1.ClusterRole{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{rbacv1.AutoUpdateAnnotationKey: "true"}},
	}
}

// Roles returns the default cluster roles. It returns an error only if the embedded table is
// invalid.
func Roles() ([]rbacv1.ClusterRole, error) {
	roles := projectRoles()
	var names []string
	err := eachLine(rolesText, func(line string) error {
		if name, ok := strings.CutPrefix(line, "["); ok {
			roles = append(roles, newRole(strings.TrimSuffix(name, "]")))
			return nil
		}
		role := &roles[len(roles)-1]
		if text, ok := strings.CutPrefix(line, "text: "); ok {
			role.Annotations[descriptionAnnotation] = text
			return nil
		}
		if label, ok := strings.CutPrefix(line, "label: "); ok {
			key, value, _ := strings.Cut(label, "=")
			role.Labels = map[string]string{key: value}
			return nil
		}
		if line == "system-only" {
			role.Annotations[systemOnlyAnnotation] = "true"
			return nil
		}
		if list, ok := strings.CutPrefix(line, "names: "); ok {
			names = strings.Fields(list)
			return nil
		}
		rule, err := parseRule(line)
		rule.ResourceNames, names = names, nil
		role.Rules = append(role.Rules, rule)
		return err
	})
	return roles, err
}

// parseRule parses a line of the form VERBS GROUPS RESOURCES...
func parseRule(line string) (rbacv1.PolicyRule, error) {
	words := strings.Fields(line)
	if len(words) < 3 {
		return rbacv1.PolicyRule{}, fmt.Errorf("a rule needs verbs, groups and resources")
	}
	rule := rbacv1.PolicyRule{Verbs: verbs(words[0])}
	if words[1] == "urls" {
		rule.NonResourceURLs = words[2:]
		return rule, nil
	}
	for group := range strings.SplitSeq(words[1], ",") {
		name, legacy := strings.CutSuffix(group, "+")
		if legacy || name == "core" {
			rule.APIGroups = append(rule.APIGroups, "")
		}
		if name != "core" {
			rule.APIGroups = append(rule.APIGroups, name)
		}
	}
	rule.Resources = words[2:]
	return rule, nil
}

// verbs expands ALL and RO in a comma-separated list.
func verbs(list string) []string {
	var expanded []string
	for verb := range strings.SplitSeq(list, ",") {
		switch verb {
		case "ALL":
			expanded = append(expanded, "create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
		case "RO":
			expanded = append(expanded, "get", "list", "watch")
		default:
			expanded = append(expanded, verb)
		}
	}
	return expanded
}

// Bindings returns the default cluster role bindings. It returns an error only if the embedded
// table is invalid.
func Bindings() ([]rbacv1.ClusterRoleBinding, error) {
	var bindings []rbacv1.ClusterRoleBinding
	err := eachLine(bindingsText, func(line string) error {
		words := strings.Fields(line)
		if len(words) < 3 {
			return fmt.Errorf("a binding needs a name, a role and subjects")
		}
		binding := rbacv1.ClusterRoleBinding{
			TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRoleBinding"},
			ObjectMeta: metav1.ObjectMeta{Name: words[0], Annotations: map[string]string{rbacv1.AutoUpdateAnnotationKey: "true"}},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: words[1]},
		}
		for _, word := range words[2:] {
			subject, err := parseSubject(word)
			if err != nil {
				return err
			}
			binding.Subjects = append(binding.Subjects, subject)
		}
		bindings = append(bindings, binding)
		return nil
	})
	return bindings, err
}

func parseSubject(word string) (rbacv1.Subject, error) {
	kind, name, _ := strings.Cut(word, ":")
	switch kind {
	case "user":
		return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}, nil
	case "group":
		return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: name}, nil
	case "serviceaccount":
		namespace, account, _ := strings.Cut(name, "/")
		return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account}, nil
	}
	return rbacv1.Subject{}, fmt.Errorf("subject %q must begin with user:, group: or serviceaccount:", word)
}

// eachLine calls do for every line that is neither empty nor a comment.
func eachLine(text string, do func(string) error) error {
	lines := bufio.NewScanner(strings.NewReader(text))
	for number := 1; lines.Scan(); number++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := do(line); err != nil {
			return fmt.Errorf("parse default policy, line %d, %q: %w", number, line, err)
		}
	}
	return lines.Err()
}
