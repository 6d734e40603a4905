package platform

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/oauth/idp/htpasswd"
)

func TestHTPasswdCommandManagesTheConfiguredFile(t *testing.T) {
	dataDir := t.TempDir()
	run := func(input string, args ...string) (string, error) {
		var out bytes.Buffer
		command := Command()
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

func TestTheDeveloperIsMadeOnce(t *testing.T) {
	h := loadHost(t, "")
	if err := h.ensureDeveloper(); err != nil {
		t.Fatal(err)
	}
	password, err := os.ReadFile(h.developerPassword())
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(h.developerPassword())
	if err != nil || info.Mode().Perm() != 0o600 || len(strings.TrimSpace(string(password))) < 20 {
		t.Errorf("mode %v, %v, %d characters", info.Mode(), err, len(password))
	}
	users := h.DeveloperFile()
	provider := htpasswd.Provider{File: users}
	works := func() bool {
		_, err := provider.AuthenticatePassword(t.Context(), developer, strings.TrimSpace(string(password)))
		return err == nil
	}
	if !works() {
		t.Error("the password does not work")
	}
	// A start that was interrupted between the two files uses the password that is there.
	if err := os.Remove(users); err != nil {
		t.Fatal(err)
	}
	if err := h.ensureDeveloper(); err != nil || !works() {
		t.Errorf("after an interruption: %v", err)
	}
	// A developer whom the administrator deleted stays away.
	if err := htpasswd.Delete(users, developer); err != nil {
		t.Fatal(err)
	}
	if err := h.ensureDeveloper(); err != nil || works() {
		t.Errorf("the developer is back: %v", err)
	}
}

func TestNobodyIsMadeWhereTheConfigurationSaysWho(t *testing.T) {
	h := loadHost(t, "oauthConfig: {identityProviders: []}")
	if err := h.ensureDeveloper(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(h.developerPassword()); !os.IsNotExist(err) {
		t.Errorf("there is a password: %v", err)
	}
}

// loadHost is a host with a master's configuration.
func loadHost(t *testing.T, master string) *host {
	t.Helper()
	dataDir := t.TempDir()
	file := filepath.Join(dataDir, "config.yaml")
	if err := os.WriteFile(file, []byte("apiVersion: v1\nkind: MasterConfig\n"+master+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h, err := (&options{dataDir: dataDir, file: file}).load()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestOnlyATerminalShowsThePassword(t *testing.T) {
	h := loadHost(t, "")
	if err := h.ensureDeveloper(); err != nil {
		t.Fatal(err)
	}
	password, err := os.ReadFile(h.developerPassword())
	if err != nil {
		t.Fatal(err)
	}
	secret := strings.TrimSpace(string(password))
	for _, terminal := range []bool{true, false} {
		var out strings.Builder
		h.nextSteps(&out, terminal)
		if got := out.String(); strings.Contains(got, secret) != terminal || strings.Contains(got, h.developerPassword()) == terminal {
			t.Errorf("terminal is %v: %s", terminal, got)
		}
	}
}
