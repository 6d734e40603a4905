package kubernetes

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// readArchive returns the contents of the files in an archive, keyed by their paths relative to its
// only top-level directory.
func readArchive(t *testing.T, path string) map[string]string {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	compressed, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for archive := tar.NewReader(compressed); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		_, name, _ := strings.Cut(header.Name, "/")
		files[name] = string(content)
	}
}

// TestSupportArchiveContainsStateWithoutSecrets saves a support archive of a cluster that contains
// a secret.
func TestSupportArchiveContainsStateWithoutSecrets(t *testing.T) {
	c := kit.Shared(t)
	const confidential = "a-confidential-value"
	c.OC("create", "secret", "generic", "archive", "--from-literal=password="+confidential)
	c.OC("create", "configmap", "archive", "--from-literal=password="+confidential)
	path := filepath.Join(t.TempDir(), "support.tar.gz")
	c.MustSlipway("support", path)
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("the archive has the mode %v, %v", info.Mode(), err)
	}
	files := readArchive(t, path)
	for name, want := range map[string]string{
		"version.txt":             "Kubernetes v1.",
		"configuration.yaml":      "kind: NodeConfig",
		"status.json":             `"name": "` + c.NodeName() + `"`,
		"logs/control-plane.log":  "apiserver",
		"machine/proc/meminfo":    "MemTotal",
		"cluster/core/nodes.txt":  c.NodeName(),
		"cluster/core/events.txt": "NAMESPACE",
		"cluster/apps.openshift.io/deploymentconfigs.txt": "No resources found",
		"cluster/core/configmaps.txt":                     "archive",
	} {
		if !strings.Contains(files[name], want) {
			t.Errorf("%s does not contain %q: %.300q", name, want, files[name])
		}
	}
	if strings.Contains(files["problems.txt"], "cluster/") {
		t.Errorf("problems: %s", files["problems.txt"])
	}
	for name, content := range files {
		if strings.Contains(content, confidential) || strings.Contains(content, "PRIVATE KEY") || strings.Contains(name, "secrets") || strings.Contains(name, "tokens") {
			t.Errorf("%s contains secrets", name)
		}
	}
	if result := c.Slipway("support", path); result.Code == 0 || !strings.Contains(result.Stderr, "exists") {
		t.Errorf("an existing file: code %d, %s", result.Code, result.Stderr)
	}
}
