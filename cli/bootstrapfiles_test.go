package cli

import (
	"encoding/json"
	"html/template"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPolicyFileContainsDefaults(t *testing.T) {
	file := filepath.Join(t.TempDir(), "new", "policy.json")
	for _, tt := range []struct {
		args []string
		want string
	}{
		{nil, ""},
		{nil, "use --force to replace it"},
		{[]string{"--force"}, ""},
	} {
		_, stderr, code := client(t, "oc", nil, append([]string{"adm", "create-bootstrap-policy-file", "--filename", file}, tt.args...)...)
		if (code == 0) != (tt.want == "") || !strings.Contains(stderr, tt.want) {
			t.Errorf("%v: code %d, stderr %q, want %q", tt.args, code, stderr, tt.want)
		}
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		Kind  string
		Items []struct {
			APIVersion, Kind string
			Metadata         struct{ Name string }
		}
	}
	if err := json.Unmarshal(content, &list); err != nil {
		t.Fatal(err)
	}
	items := map[string]bool{}
	for _, item := range list.Items {
		items[item.APIVersion+" "+item.Kind+" "+item.Metadata.Name] = true
	}
	for _, want := range []string{"ClusterRole cluster-reader", "ClusterRole self-provisioner", "ClusterRoleBinding self-provisioners", "ClusterRoleBinding cluster-admins"} {
		if list.Kind != "List" || !items["rbac.authorization.k8s.io/v1 "+want] {
			t.Errorf("the file with %s has no %s", list.Kind, want)
		}
	}
}

func TestProjectTemplateIsPrinted(t *testing.T) {
	stdout, stderr, _ := client(t, "oc", nil, "adm", "create-bootstrap-project-template", "--name=shops")
	if stderr != "" {
		t.Error(stderr)
	}
	Golden(t, "project-template.yaml", stdout)
	if text, _, _ := client(t, "oc", nil, "adm", "create-bootstrap-project-template", "-o", "json"); !json.Valid([]byte(text)) {
		t.Errorf("the JSON template is %s", text)
	}
}

func TestPagesArePrintedAsTemplates(t *testing.T) {
	for _, name := range []string{"login", "provider-selection", "error"} {
		stdout, stderr, _ := client(t, "oc", nil, "adm", "create-"+name+"-template")
		if _, err := template.New(name).Parse(stdout); err != nil || !strings.Contains(stdout, "<html") {
			t.Errorf("%s: %v, stderr %q:\n%s", name, err, stderr, stdout)
		}
	}
}
