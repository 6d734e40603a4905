package policy

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/component-helpers/auth/rbac/validation"
)

var update = flag.Bool("update", false, "rewrite the golden file")

// TestMatrixOfRolesResourcesAndVerbs checks every default role for every verb on every resource
// that any role contains, and on one resource that no role contains. The golden file lists the
// allowed verbs. A role that is not in the file allows nothing. Resources in the empty API group
// are listed as "core".
func TestMatrixOfRolesResourcesAndVerbs(t *testing.T) {
	list, err := Roles()
	if err != nil {
		t.Fatal(err)
	}
	type resource struct{ name, group string }
	resources, names := map[resource]bool{{"widgets", "example.com"}: true}, map[string]bool{}
	for _, role := range list {
		for _, rule := range role.Rules {
			for _, verb := range rule.Verbs {
				names[verb] = verb != "*"
			}
			for _, group := range rule.APIGroups {
				for _, name := range rule.Resources {
					resources[resource{name, group}] = name != "*" && group != "*"
				}
			}
		}
	}
	var lines []string
	for _, role := range list {
		for resource, requested := range resources {
			var allowed []string
			for _, verb := range slices.Sorted(maps.Keys(names)) {
				rule := rbacv1.PolicyRule{Verbs: []string{verb}, APIGroups: []string{resource.group}, Resources: []string{resource.name}}
				if covered, _ := validation.Covers(role.Rules, []rbacv1.PolicyRule{rule}); covered && requested && names[verb] {
					allowed = append(allowed, verb)
				}
			}
			if len(allowed) > 0 {
				group := resource.group
				if group == "" {
					group = "core"
				}
				lines = append(lines, fmt.Sprintf("%s\t%s\t%s\t%s\n", role.Name, group, resource.name, strings.Join(allowed, " ")))
			}
		}
	}
	slices.Sort(lines)
	const file = "testdata/matrix.tsv"
	got := "role\tgroup\tresource\tverbs\n" + strings.Join(compact(lines), "")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; run go test with -update to write it", err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("the matrix has changed; if this is intended, run go test ./bootstrap/policy -update (-want +got):\n%s", diff)
	}
}

// compact merges adjacent lines that differ only in the resource.
func compact(lines []string) []string {
	var joined []string
	for _, line := range lines {
		cells := strings.Split(line, "\t")
		if len(joined) > 0 {
			last := strings.Split(joined[len(joined)-1], "\t")
			if last[0] == cells[0] && last[1] == cells[1] && last[3] == cells[3] {
				last[2] += " " + cells[2]
				joined[len(joined)-1] = strings.Join(last, "\t")
				continue
			}
		}
		joined = append(joined, line)
	}
	return joined
}
