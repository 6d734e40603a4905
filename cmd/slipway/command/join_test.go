package command

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// runVerb runs a verb for the host with the given data directory. It returns the verb's error.
func runVerb(dataDir string, args ...string) error {
	_, err := verbOutput(dataDir, args...)
	return err
}

// verbOutput works like runVerb, but also returns the verb's output.
func verbOutput(dataDir string, args ...string) (string, error) {
	var out bytes.Buffer
	root := New()
	root.SetArgs(append(args, "--data-dir", dataDir))
	root.SetIn(&bytes.Buffer{})
	root.SetOut(&out)
	root.SetErr(&out)
	err := root.Execute()
	return out.String(), err
}

func TestJoinRejectsWrongFlags(t *testing.T) {
	tests := []struct {
		name string
		args []string
		want string
	}{
		{"token without master", []string{"--token", "sw1.x"}, "need --join"},
		{"router without master", []string{"--router"}, "need --join"},
		{"master without scheme", []string{"--join", "master:8443"}, "use https://HOST:8443"},
		{"master with path", []string{"--join", "https://master:8443/api"}, "use https://HOST:8443"},
		{"no token", []string{"--join", "https://master:8443"}, "not a complete token"},
		{"two tokens", []string{"--join", "https://master:8443", "--token", "sw1.x", "--token-file", "-"}, "use either --token or --token-file"},
		{"no file", []string{"--join", "https://master:8443", "--token-file", "none"}, "--token-file: open none"},
		{"empty input", []string{"--join", "https://master:8443", "--token-file", "-"}, "standard input: it is not a complete token"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			err := runVerb(dir, append([]string{"up"}, tt.args...)...)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if _, err := os.Stat(dir); !os.IsNotExist(err) {
				t.Errorf("the data directory exists: %v", err)
			}
		})
	}
}

func TestVerbsOfMastersFailOnNodes(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "node"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "node", "membership.json"), []byte(`{"masters": ["192.0.2.1:8443"]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"token create", "token list", "token revoke abcdef", "certificates rotate", "encryption rotate"} {
		if err := runVerb(dir, strings.Fields(verb)...); err == nil || !strings.Contains(err.Error(), "run the command on a master") {
			t.Errorf("%s: %v", verb, err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "pki")); !os.IsNotExist(err) {
		t.Errorf("a verb created an authority: %v", err)
	}
}

func TestOnlyJoinedHostsLeave(t *testing.T) {
	if err := runVerb(t.TempDir(), "leave"); err == nil || !strings.Contains(err.Error(), "slipway down --purge") {
		t.Errorf("got %v", err)
	}
}
