package login

import (
	"os"
	"path/filepath"
	"testing"
)

func TestHostKubeconfig(t *testing.T) {
	dataDir, home := t.TempDir(), filepath.Join(t.TempDir(), ".kube", "config")
	host := filepath.Join(dataDir, "admin.kubeconfig")
	if err := os.MkdirAll(filepath.Dir(home), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{host, home} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		name string
		env  map[string]string
		home string
		want string
	}{
		{"a cluster on the host", map[string]string{"SLIPWAY_DATA_DIR": dataDir}, "/nonexistent", host},
		{"KUBECONFIG is set", map[string]string{"SLIPWAY_DATA_DIR": dataDir, "KUBECONFIG": "/some"}, "/nonexistent", ""},
		{"~/.kube/config exists", map[string]string{"SLIPWAY_DATA_DIR": dataDir}, home, ""},
		{"no cluster on the host", map[string]string{"SLIPWAY_DATA_DIR": t.TempDir()}, "/nonexistent", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := HostKubeconfig(func(name string) string { return tt.env[name] }, tt.home)
			if got != tt.want {
				t.Errorf("kubeconfig %q, want %q", got, tt.want)
			}
		})
	}
}
