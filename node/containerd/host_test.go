package containerd

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestHasCapability(t *testing.T) {
	for name, c := range map[string]struct {
		status string
		want   bool
	}{
		"all":                    {"Name:\tx\nCapInh:\t0000000000000000\nCapPrm:\t000001ffffffffff\nCapEff:\t000001ffffffffff\n", true},
		"all other capabilities": {"CapEff:\t000001fffeffffff\n", false},
		"only permitted":         {"CapPrm:\t000001ffffffffff\nCapEff:\t0000000000000000\n", false},
		"unknown format":         {"CapEff:\tfull\n", false},
		"missing line":           {"Name:\tx\n", false},
	} {
		path := filepath.Join(t.TempDir(), "status")
		if err := os.WriteFile(path, []byte(c.status), 0o644); err != nil {
			t.Fatal(err)
		}
		if got := hasCapability(path, unix.CAP_SYS_RESOURCE); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestOverlaySupportDependsOnFileSystem(t *testing.T) {
	if !inspectHost(t.TempDir()).overlay {
		t.Error("overlay mounts do not work on the file system of the temporary directory: this test needs one where they do")
	}
	// procfs cannot contain the upper directory of an overlay mount.
	if inspectHost("/proc/self/task").overlay {
		t.Error("overlay is reported to work on procfs")
	}
}
