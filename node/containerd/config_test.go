package containerd

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// ConfigWithoutOverlay returns the configuration for this host, but without support for overlay
// mounts.
func (r Runtime) ConfigWithoutOverlay() ([]byte, error) {
	h := inspectHost(r.Root)
	h.overlay = false
	return r.config(h)
}

func TestConfig(t *testing.T) {
	r := Runtime{
		Shim: "/data/bin/0/containerd-shim-runc-v2", Runc: "/data/bin/0/runc",
		Root: "/data/containerd", State: "/data/run/containerd", Socket: "/data/run/containerd.sock",
		CNIConfDir: "/data/cni/conf", CNIBinDirs: []string{"/data/cni/bin"}, RegistryConfigDir: `/data/"quoted"\registries.d`,
		SandboxImage: "localhost/slipway-pause:current",
	}
	hosts := map[string]host{
		"full":    {platform: "linux/amd64", overlay: true, lowersOOMScore: true},
		"limited": {platform: "linux/arm64"},
	}
	for name, h := range hosts {
		t.Run(name, func(t *testing.T) {
			got, err := r.config(h)
			if err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", name+".toml")
			if *update {
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("run go test -update ./node/containerd if this is intended:\n%s", diff)
			}
		})
	}
}

func TestShimSocketDirFitsSocketAddress(t *testing.T) {
	short := Runtime{State: "/var/lib/slipway/run/containerd"}
	if got, want := short.ShimSocketDir(), "/var/lib/slipway/run/containerd/s"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	long := Runtime{State: "/srv/clusters/" + strings.Repeat("x", 60) + "/run/containerd"}
	other := Runtime{State: long.State + "2"}
	if got := long.ShimSocketDir(); len(got) > maxSocketDir || got == other.ShimSocketDir() {
		t.Errorf("socket directory %q, and %q for another state", got, other.ShimSocketDir())
	}
}
