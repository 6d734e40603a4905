package teardown

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// socket creates a Unix socket. If live is set, a process listens on it.
func socket(t *testing.T, path string, live bool) {
	t.Helper()
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	if live {
		t.Cleanup(func() { listener.Close() })
		return
	}
	listener.SetUnlinkOnClose(false)
	listener.Close()
}

func TestRemainsOfDevicePluginsAreRemoved(t *testing.T) {
	for name, tt := range map[string]struct {
		live  string // socket on which a program listens
		other string // another program's file
		want  []string
	}{
		"all ended":       {"", "", nil},
		"another kubelet": {"kubelet.sock", "", []string{"gpu.sock", "kubelet.sock", "kubelet_internal_checkpoint"}},
		"a plugin":        {"gpu.sock", "", []string{"gpu.sock"}},
		"another file":    {"", "notes", []string{"notes"}},
	} {
		parent := filepath.Join(t.TempDir(), "kubelet")
		dir := filepath.Join(parent, "device-plugins")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"kubelet.sock", "gpu.sock"} {
			socket(t, filepath.Join(dir, path), path == tt.live)
		}
		for _, path := range []string{"kubelet_internal_checkpoint", tt.other} {
			if path == "" {
				continue
			}
			if err := os.WriteFile(filepath.Join(dir, path), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 { // the command can be repeated
			if err := DevicePlugins(dir + "/"); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if got := names(dir); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q remains, want %q", name, got, tt.want)
		}
		if _, err := os.Stat(parent); (err == nil) != (len(tt.want) > 0) {
			t.Errorf("%s: the parent directory: %v", name, err)
		}
	}
}
