package node

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/kubernetes/pkg/credentialprovider"
)

// rootVariable is the environment variable that contains a kubelet's root directory. If it is set,
// the test prints the registries for which this kubelet has credentials. A separate process is
// needed because upstream reads the home directory when a process starts.
const rootVariable = "TEST_KUBELET_ROOT"

func TestPodsDoNotUseCredentialsInHomeOfRoot(t *testing.T) {
	if root := os.Getenv(rootVariable); root != "" {
		if err := ensurePullCredentials(root); err != nil {
			t.Fatal(err)
		}
		credentialprovider.SetPreferredDockercfgPath(root)
		config, err := credentialprovider.ReadDockerConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		for registry := range config {
			fmt.Println("registry", registry)
		}
		return
	}
	write := func(path, registry string) {
		t.Helper()
		content := fmt.Sprintf(`{"auths": {%q: {"auth": "YWRtaW46dG9rZW4="}}}`, registry)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	home, root := t.TempDir(), t.TempDir()
	write(filepath.Join(home, ".docker", "config.json"), "home.example.com")
	registries := func() string {
		t.Helper()
		command := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
		command.Env = append(os.Environ(), "HOME="+home, rootVariable+"="+root)
		command.Dir = t.TempDir()
		output, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, output)
		}
		return string(output)
	}
	if output := registries(); strings.Contains(output, "registry ") {
		t.Errorf("all pods can use credentials of the home directory: %s", output)
	}
	write(filepath.Join(root, "config.json"), "node.example.com")
	if output := registries(); !strings.Contains(output, "registry node.example.com\n") || strings.Contains(output, "home.example.com") {
		t.Errorf("pods cannot use the credentials that the administrator gives to all: %s", output)
	}
}
