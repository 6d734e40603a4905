package command

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/oauth/idp/htpasswd"
)

func TestHTPasswdManagesConfiguredFile(t *testing.T) {
	dataDir := t.TempDir()
	run := func(input string, args ...string) (string, error) {
		var out bytes.Buffer
		command := New()
		command.SetArgs(append([]string{"htpasswd", "--data-dir", dataDir}, args...))
		command.SetIn(strings.NewReader(input))
		command.SetOut(&out)
		command.SetErr(&out)
		err := command.Execute()
		return out.String(), err
	}
	for _, step := range []struct {
		input, args, want string
		fails             bool
	}{
		{"", "list", "", false},
		{"first\n", "set alice", "", false},
		{"second", "set bob", "", false},
		{"", "list", "alice\nbob\n", false},
		{"", "delete alice", "", false},
		{"", "delete alice", "", true},
		{"", "set carol", "", true},
		{"x", "set a:b", "", true},
		{"", "list", "bob\n", false},
	} {
		got, err := run(step.input, strings.Fields(step.args)...)
		if (err != nil) != step.fails || !step.fails && got != step.want {
			t.Errorf("%s: %q, %v", step.args, got, err)
		}
	}
	provider := htpasswd.Provider{File: filepath.Join(dataDir, "users.htpasswd")}
	if _, err := provider.AuthenticatePassword(t.Context(), "bob", "second"); err != nil {
		t.Error(err)
	}
}
