package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSecretsReportInvalidArguments(t *testing.T) {
	key := filepath.Join(t.TempDir(), "none")
	for args, want := range map[string]string{
		"link builder":                          "requires at least 2 arg",
		"link builder a --for=push":             "must be mount or pull",
		"new-sshauth a":                         "--ssh-privatekey",
		"new-sshauth a --ssh-privatekey=" + key: "no such file",
		"new-basicauth a":                       "--username",
		"new a":                                 "requires at least 2 arg",
		"new-dockercfg a --docker-server=b.example.": "docker-password",
	} {
		if _, stderr, code := client(t, "oc", nil, append([]string{"secrets"}, strings.Fields(args)...)...); code == 0 || !strings.Contains(stderr, want) {
			t.Errorf("oc secrets %s: code %d, %q, want %q", args, code, stderr, want)
		}
	}
	if _, err := os.Stat(key); err == nil {
		t.Error("a file was created")
	}
}
