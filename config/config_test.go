package config

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	legacyv1 "github.com/openshift/api/legacyconfig/v1"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// load calls Load with a file in testdata and an empty data directory.
func load(t *testing.T, name string) (*Config, error) {
	t.Helper()
	return Load(t.TempDir(), filepath.Join("testdata", name))
}

// golden compares text with a file in testdata.
func golden(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// withoutFolder removes the machine-specific prefix from testdata paths.
func withoutFolder(t *testing.T, text string) string {
	t.Helper()
	folder, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(text, folder+"/", "")
}

func TestProblemsNameFileLineAndKey(t *testing.T) {
	for _, name := range []string{
		"misspelt", "types", "twice", "values", "ports", "services", "oauth", "tls", "syntax", "empty",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := load(t, name+".yaml")
			if problems := (Problems)(nil); !errors.As(err, &problems) {
				t.Fatalf("Load: %v, want Problems", err)
			}
			golden(t, name+".problems", withoutFolder(t, err.Error()+"\n"))
		})
	}
}

func TestProblemsOfBothFilesAreReportedTogether(t *testing.T) {
	dir := t.TempDir()
	write(t, MasterFile(dir), "apiVersion: v1\nkind: MasterConfig\nservingInfo:\n  bindAdress: x\n")
	write(t, NodeFile(dir), "apiVersion: v1\nkind: NodeConfig\nnodeIP: here\n")
	_, err := Load(dir, "")
	want := MasterFile(dir) + ":4: servingInfo.bindAdress: unknown key; did you mean bindAddress?\n" +
		NodeFile(dir) + `:3: nodeIP: is "here", must be an IP address`
	if err == nil || err.Error() != want {
		t.Errorf("Load: %v, want\n%s", err, want)
	}
}

func TestUnreadableFilesAreReported(t *testing.T) {
	tests := []struct {
		name, content, want string
	}{
		{"empty", "", ": is empty; remove it, and the next start writes it with defaults"},
		{"binary", "\x00\x01\x02", ": not valid YAML: control characters are not allowed"},
		{"other kind", "apiVersion: v1\nkind: NodeConfig\n", `:2: kind: is "NodeConfig", must be MasterConfig`},
		{"cut off", "apiVersion: v1\nkind: Mas", `:2: kind: is "Mas", must be MasterConfig`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, MasterFile(dir), test.content)
			_, err := Load(dir, "")
			if want := MasterFile(dir) + test.want; err == nil || err.Error() != want {
				t.Errorf("Load: %v, want %s", err, want)
			}
		})
	}
	t.Run("folder", func(t *testing.T) {
		dir := t.TempDir()
		if err := os.MkdirAll(MasterFile(dir), 0o755); err != nil {
			t.Fatal(err)
		}
		_, err := Load(dir, "")
		if want := MasterFile(dir) + ": cannot be read: is a directory"; err == nil || err.Error() != want {
			t.Errorf("Load: %v, want %s", err, want)
		}
	})
}

func TestMissingFileIsReported(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none.yaml")
	_, err := Load(t.TempDir(), path)
	if want := path + ": cannot be read: no such file or directory"; err == nil || err.Error() != want {
		t.Errorf("Load: %v, want %s", err, want)
	}
}

func TestLoadWritesNoFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	if _, err := Load(dir, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("data directory: got error %v, want os.ErrNotExist", err)
	}
}

func TestFirstStartWritesFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	first, err := Load(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := WriteDefaults(dir); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{MasterFile(dir), NodeFile(dir)} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, want 0600", path, info.Mode())
		}
		entries, err := os.ReadDir(filepath.Dir(path))
		if err != nil || len(entries) != 1 {
			t.Errorf("%s: %v, %v, want one file", filepath.Dir(path), entries, err)
		}
	}
	golden(t, "default-master.yaml", read(t, MasterFile(dir)))
	nodeFile := read(t, NodeFile(dir))
	golden(t, "default-node.yaml", strings.ReplaceAll(nodeFile, "nodeName: "+first.Node.NodeName, "nodeName: HOST"))

	second, err := Load(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	// Only the default file that WriteDefaults writes sets these blocks.
	first.Master.EtcdConfig.Address, first.Master.EtcdConfig.PeerAddress = "127.0.0.1:2379", "127.0.0.1:2380"
	first.Master.DNSConfig = &legacyv1.DNSConfig{BindAddress: "0.0.0.0:8053"}
	if diff := cmp.Diff(first.Master, second.Master); diff != "" {
		t.Errorf("second start differs:\n%s", diff)
	}
	if ignored := second.Ignored(); len(ignored) > 0 {
		t.Errorf("Ignored of default files: %v, want none", ignored)
	}
}

func TestStartKeepsEditedFiles(t *testing.T) {
	dir := t.TempDir()
	content := "apiVersion: v1\nkind: NodeConfig\nnodeName: kept.example.com\n"
	write(t, NodeFile(dir), content)
	if err := WriteDefaults(dir); err != nil {
		t.Fatal(err)
	}
	c, err := Load(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	if got := read(t, NodeFile(dir)); got != content {
		t.Errorf("file is now %q", got)
	}
	if c.Node.NodeName != "kept.example.com" || c.Node.DNSDomain != "cluster.local" {
		t.Errorf("got name %q, domain %q", c.Node.NodeName, c.Node.DNSDomain)
	}
}

func TestConfigFileDoesNotChangeDataDirectory(t *testing.T) {
	dir := t.TempDir()
	write(t, NodeFile(dir), "apiVersion: v1\nkind: NodeConfig\nnodeName: of-the-data-directory\n")
	file := filepath.Join(t.TempDir(), "c.yaml")
	write(t, file, "apiVersion: v1\nkind: MasterConfig\nservingInfo: {bindAddress: \"0.0.0.0:443\"}\n")
	c, err := Load(dir, file)
	if err != nil {
		t.Fatal(err)
	}
	if _, port := c.Master.APIAddress(); port != 443 || c.Node.NodeName != "of-the-data-directory" {
		t.Errorf("got port %d, node %q", port, c.Node.NodeName)
	}
	if _, err := os.Stat(MasterFile(dir)); !os.IsNotExist(err) {
		t.Errorf("master file: got error %v, want os.ErrNotExist", err)
	}
}

func TestWriteFailureIsReported(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "master"), "a file in place of the directory")
	err := WriteDefaults(dir)
	if err == nil || !strings.HasPrefix(err.Error(), "write default configuration: ") || !strings.Contains(err.Error(), dir) {
		t.Errorf("WriteDefaults: %v, want an error that names the folder", err)
	}
}

func TestNodeNameOf(t *testing.T) {
	for host, want := range map[string]string{
		"Node1.Example.COM": "node1.example.com",
		"my_pc":             "my-pc",
		"-a.":               "a",
		"":                  "localhost",
		"größe":             "gr--e",
	} {
		if got := nodeNameOf(host); got != want {
			t.Errorf("nodeNameOf(%q) = %q, want %q", host, got, want)
		}
	}
}

// loadNetwork loads a MasterConfig with the given network settings. If want is not empty, the
// settings must be rejected with an error that contains want, and loadNetwork returns nil.
func loadNetwork(t *testing.T, settings, want string) *Config {
	t.Helper()
	file := filepath.Join(t.TempDir(), "master-config.yaml")
	write(t, file, "{apiVersion: v1, kind: MasterConfig, networkConfig: {"+settings+"}}\n")
	c, err := Load("/data", file)
	if err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("Load: %v, want %s", err, want)
	}
	if err != nil {
		return nil
	}
	return c
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
