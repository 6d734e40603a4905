package adm

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

func TestConfigurationFilesArePatched(t *testing.T) {
	file := filepath.Join(t.TempDir(), "master-config.yaml")
	const content = "apiVersion: v1\nkind: MasterConfig\nmasterPublicURL: https://old.example.com\ncorsAllowedOrigins: [a, b]\n"
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	for kind, patch := range map[string]string{
		"strategic": `{masterPublicURL: "https://new.example.com"}`,
		"merge":     `{"masterPublicURL": "https://new.example.com"}`,
		"json":      `[{"op": "replace", "path": "/masterPublicURL", "value": "https://new.example.com"}]`,
	} {
		streams, _, out, _ := genericiooptions.NewTestIOStreams()
		command := newConfigPatch(streams)
		command.SetArgs([]string{file, "--type=" + kind, "-p", patch})
		if err := command.Execute(); err != nil {
			t.Fatal(err)
		}
		if got, want := out.String(), strings.ReplaceAll(content, "old", "new"); !strings.Contains(got, "masterPublicURL: https://new.example.com\n") || !strings.Contains(got, "- b\n") {
			t.Errorf("%s: %s, want the content of %s", kind, got, want)
		}
	}
	if after, err := os.ReadFile(file); err != nil || string(after) != content {
		t.Errorf("the file is %q, %v", after, err)
	}
}
