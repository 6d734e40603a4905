package policy

import (
	_ "embed"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/component-helpers/auth/rbac/validation"
)

// specified contains the rules of admin and basic-user that OpenShift 3.11 Cluster Administration,
// 10.2.1, lists. Its columns are role, resource with group, name and verbs.
//
//go:embed testdata/specified.tsv
var specified string

func roles(t *testing.T) map[string]rbacv1.ClusterRole {
	t.Helper()
	list, err := Roles()
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]rbacv1.ClusterRole{}
	for _, role := range list {
		if _, twice := byName[role.Name]; twice {
			t.Errorf("role %s is twice in the table", role.Name)
		}
		byName[role.Name] = role
	}
	return byName
}

func TestRolesHaveSpecifiedRules(t *testing.T) {
	all := roles(t)
	owner := map[string][]rbacv1.PolicyRule{
		"admin":      all["system:openshift:aggregate-to-admin"].Rules,
		"basic-user": all["basic-user"].Rules,
	}
	rules := map[string][]rbacv1.PolicyRule{}
	for line := range strings.Lines(specified) {
		columns := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if columns[0] == "role" {
			continue
		}
		resource, subresource, nested := strings.Cut(columns[1], "/")
		name, group, _ := strings.Cut(resource, ".")
		if nested {
			name += "/" + subresource
		}
		rule := rbacv1.PolicyRule{Verbs: strings.Fields(columns[3]), APIGroups: []string{group}, Resources: []string{name}, ResourceNames: strings.Fields(columns[2])}
		rules[columns[0]] = append(rules[columns[0]], rule)
		if covered, missing := validation.Covers(owner[columns[0]], []rbacv1.PolicyRule{rule}); !covered {
			t.Errorf("role %s lacks %v", columns[0], missing)
		}
	}
	if len(rules["admin"]) != 134 || len(rules["basic-user"]) != 13 {
		t.Fatalf("%d and %d rules are specified, want 134 and 13", len(rules["admin"]), len(rules["basic-user"]))
	}
	if covered, extra := validation.Covers(rules["basic-user"], owner["basic-user"]); !covered {
		t.Errorf("basic-user has rules that are not specified: %v", extra)
	}
}

func TestEditAndViewCannotAccessMembership(t *testing.T) {
	all := roles(t)
	forbidden := map[string][]string{
		"system:openshift:aggregate-to-edit": {"roles", "rolebindings", "rolebindingrestrictions"},
		"system:openshift:aggregate-to-view": {"roles", "rolebindings", "rolebindingrestrictions", "secrets"},
	}
	for name, resources := range forbidden {
		for _, rule := range all[name].Rules {
			for _, resource := range resources {
				if slices.Contains(rule.Resources, resource) {
					t.Errorf("%s has a rule for %s: %v", name, resource, rule)
				}
			}
		}
	}
	for _, rule := range all["system:openshift:aggregate-to-view"].Rules {
		for _, verb := range rule.Verbs {
			if !slices.Contains([]string{"get", "list", "watch", "view"}, verb) {
				t.Errorf("view can %s %v", verb, rule.Resources)
			}
		}
	}
}

func TestClusterReaderCanReadEverythingExceptSecrets(t *testing.T) {
	for _, rule := range roles(t)["cluster-reader"].Rules {
		for _, resource := range rule.Resources {
			if resource == "secrets" || resource == "*" || strings.HasSuffix(resource, "tokens") {
				t.Errorf("cluster-reader can read %s", resource)
			}
		}
	}
}

func TestBindingsReferToRoles(t *testing.T) {
	all := roles(t)
	bindings, err := Bindings()
	if err != nil {
		t.Fatal(err)
	}
	for _, binding := range bindings {
		if _, ok := all[binding.RoleRef.Name]; !ok {
			t.Errorf("binding %s refers to %s, which is not a role", binding.Name, binding.RoleRef.Name)
		}
		if len(binding.Subjects) == 0 {
			t.Errorf("binding %s has no subjects", binding.Name)
		}
	}
}

func TestInvalidRulesAndSubjectsAreRejected(t *testing.T) {
	for _, text := range []string{"get core", "get"} {
		if _, err := parseRule(text); err == nil {
			t.Errorf("rule %q is accepted", text)
		}
	}
	if _, err := parseSubject("robot:r2"); err == nil {
		t.Error(`subject "robot:r2" is accepted`)
	}
}

func TestRolesHaveDescriptionsAndAnnotations(t *testing.T) {
	all := roles(t)
	for _, name := range []string{"cluster-admin", "cluster-debugger", "cluster-reader"} {
		if all[name].Annotations["authorization.openshift.io/system-only"] != "true" {
			t.Errorf("role %s lacks the system-only annotation", name)
		}
	}
	for _, name := range []string{"admin", "basic-user", "cluster-admin", "cluster-status", "edit", "self-provisioner", "view"} {
		if all[name].Annotations["openshift.io/description"] == "" || all[name].Annotations["rbac.authorization.kubernetes.io/autoupdate"] != "true" {
			t.Errorf("role %s has the annotations %v", name, all[name].Annotations)
		}
	}
	debug := []rbacv1.PolicyRule{{Verbs: []string{"get"}, NonResourceURLs: []string{"/metrics", "/debug/pprof", "/debug/pprof/*"}}}
	if covered, missing := validation.Covers(all["cluster-debugger"].Rules, debug); !covered {
		t.Errorf("cluster-debugger lacks %v", missing)
	}
	if covered, extra := validation.Covers(debug, all["cluster-debugger"].Rules); !covered {
		t.Errorf("cluster-debugger has rules that are not specified: %v", extra)
	}
	status := []rbacv1.PolicyRule{{Verbs: []string{"get"}, NonResourceURLs: []string{"/healthz", "/version", "/api", "/apis"}}}
	if covered, missing := validation.Covers(all["cluster-status"].Rules, status); !covered {
		t.Errorf("cluster-status lacks %v", missing)
	}
	sudo := []rbacv1.PolicyRule{{Verbs: []string{"impersonate"}, APIGroups: []string{""}, Resources: []string{"users"}, ResourceNames: []string{"system:admin"}}}
	if covered, missing := validation.Covers(all["sudoer"].Rules, sudo); !covered {
		t.Errorf("sudoer lacks %v", missing)
	}
}

func TestSystemUsersHaveExpectedRoles(t *testing.T) {
	bindings, err := Bindings()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]string{}
	for _, binding := range bindings {
		for _, subject := range binding.Subjects {
			values[strings.TrimPrefix(subject.Namespace+"/"+subject.Name, "/")] += " " + binding.RoleRef.Name
		}
	}
	for user, role := range map[string]string{
		"system:admin": "cluster-admin", "default/router": "system:router", "default/registry": "system:registry",
		"openshift-infra/build-controller": "system:build-controller", "openshift-infra/deployment-controller": "system:deployment-controller",
	} {
		if values[user] != " "+role {
			t.Errorf("%s has the roles%s, want %s", user, values[user], role)
		}
	}
}
