package containerd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRegistryHostsKeepFilesOfAdministrator(t *testing.T) {
	dir := t.TempDir()
	read := func(name string) string {
		content, err := os.ReadFile(filepath.Join(dir, name, "hosts.toml"))
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	if err := os.Mkdir(filepath.Join(dir, "own.example.com"), 0o755); err != nil {
		t.Fatal(err)
	}
	const content = "server = \"https://mirror\"\n"
	if err := os.WriteFile(filepath.Join(dir, "own.example.com", "hosts.toml"), []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{"192.0.2.1:5000", "192.0.2.2:5000"} {
		hosts := RegistryHosts{
			Dir: dir, Names: []string{"registry.svc:5000", "own.example.com", "registry.svc:5000"}, Address: address, CAFile: "/ca.crt",
		}
		if err := hosts.Write(); err != nil {
			t.Fatal(err)
		}
		want := "server = \"https://registry.svc:5000\"\n\n[host.\"https://" + address + "\"]\n"
		if got := read("registry.svc:5000"); !strings.Contains(got, want) || !strings.Contains(got, `ca = "/ca.crt"`) {
			t.Errorf("got %s", got)
		}
	}
	if got := read("own.example.com"); got != content {
		t.Errorf("the administrator's file was changed to %s", got)
	}
}
