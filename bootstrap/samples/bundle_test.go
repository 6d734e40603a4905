package samples

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

func TestPlaybookDoesNotEvaluateParameters(t *testing.T) {
	dir := t.TempDir()
	secrets, program := filepath.Join(dir, "secrets"), filepath.Join(dir, "read-variables")
	content, err := fs.ReadFile(files, "images/apb-base/root/usr/libexec/read-variables")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(secrets, "apb-cloud"), 0o700); err != nil {
		t.Fatal(err)
	}
	const playbook = `
- hosts: localhost
  gather_facts: false
  tasks:
  - copy: {dest: "{{ playbook_dir }}/result", content: "{{ greeting }} {{ account.name }} {{ names[0] }} {{ size + 1 }} {{ key | length }}"}
`
	for name, content := range map[string][]byte{program: content, filepath.Join(secrets, "apb-cloud", "key"): []byte("p{{cret"), filepath.Join(dir, "playbook.yml"): []byte(playbook)} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const text = `{{ key }} {{ lookup('pipe', 'id') }}`
	variables, err := exec.CommandContext(t.Context(), "python3", program, secrets, `{"greeting": "`+text+`", "account": {"name": "`+text+`"}, "names": ["`+text+`"], "size": 2}`).Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "variables"), variables, 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), "ansible-playbook", "--connection", "local", "--inventory", "localhost,", filepath.Join(dir, "playbook.yml"), "--extra-vars", "@"+filepath.Join(dir, "variables"))
	command.Env = append(os.Environ(), "ANSIBLE_LOCAL_TEMP="+dir, "ANSIBLE_REMOTE_TEMP="+dir)
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	result, err := os.ReadFile(filepath.Join(dir, "result"))
	if want := text + " " + text + " " + text + " 3 7"; err != nil || string(result) != want {
		t.Errorf("the playbook writes %q, want %q: %v", result, want, err)
	}
}
