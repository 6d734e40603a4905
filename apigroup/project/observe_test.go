package project

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestRulesThatMakeProjectVisible(t *testing.T) {
	rule := func(verb, group, resource string, names ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{Verbs: []string{verb}, APIGroups: []string{group}, Resources: []string{resource}, ResourceNames: names}
	}
	for _, tt := range []struct {
		name string
		rule rbacv1.PolicyRule
		want bool
	}{
		{"get namespaces", rule("get", "", "namespaces"), true},
		{"get this namespace", rule("get", "", "namespaces", "blog", "shop"), true},
		{"get another namespace", rule("get", "", "namespaces", "blog"), false},
		{"everything", rule("*", "*", "*"), true},
		{"list namespaces", rule("list", "", "namespaces"), false},
		{"namespaces of another group", rule("get", "apps", "namespaces"), false},
		{"another resource", rule("get", "", "pods"), false},
		{"URLs", rbacv1.PolicyRule{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := shows(tt.rule, "shop"); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestSubjectsOfBindings(t *testing.T) {
	for _, tt := range []struct {
		name  string
		bound rbacv1.Subject
		want  subject
		ok    bool
	}{
		{"user", rbacv1.Subject{Kind: "User", Name: "alice"}, userSubject("alice"), true},
		{"group", rbacv1.Subject{Kind: "Group", Name: "dev"}, groupSubject("dev"), true},
		{"service account", rbacv1.Subject{Kind: "ServiceAccount", Namespace: "ci", Name: "robot"}, userSubject("system:serviceaccount:ci:robot"), true},
		{"service account of the project", rbacv1.Subject{Kind: "ServiceAccount", Name: "robot"}, userSubject("system:serviceaccount:shop:robot"), true},
		{"unknown kind", rbacv1.Subject{Kind: "Robot", Name: "robot"}, "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got, ok := subjectOf(tt.bound, "shop"); got != tt.want || ok != tt.ok {
				t.Errorf("got %q, %v, want %q, %v", got, ok, tt.want, tt.ok)
			}
		})
	}
	if userSubject("dev") == groupSubject("dev") {
		t.Error("a user and a group of the same name are one subject")
	}
}

func TestVersionsAreNumbers(t *testing.T) {
	for text, want := range map[string]uint64{"17": 17, "": 0, "a": 0} {
		if got := version(&metav1.ObjectMeta{ResourceVersion: text}); got != want {
			t.Errorf("%q: got %d, want %d", text, got, want)
		}
	}
}
