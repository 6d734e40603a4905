package node

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"testing"

	"github.com/slipway-platform/slipway/internal/cgroup"
)

func TestProcessesOfPlatformHaveCgroups(t *testing.T) {
	root := fmt.Sprintf("/slipway-test-%d", os.Getpid())
	platform := path.Join(root, "platform")
	processes := []string{path.Join(platform, "control-plane"), path.Join(platform, "node")}
	t.Cleanup(func() {
		for _, group := range append(slices.Clone(processes), platform, root) {
			for _, pattern := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/*"} {
				dirs, err := filepath.Glob(pattern + group)
				if err != nil {
					t.Error(err)
				}
				for _, dir := range dirs {
					if err := os.Remove(dir); err != nil {
						t.Error(err)
					}
				}
			}
		}
	})
	reserve := Reserve{Memory: 64 << 20}
	for range 2 { // a restart creates the same cgroups
		if err := CreateCgroups(root, platform, processes, reserve); err != nil {
			t.Fatal(err)
		}
	}
	if got := cgroup.Children(platform); !slices.Equal(slices.Sorted(slices.Values(got)), []string{"control-plane", "node"}) {
		t.Errorf("the cgroups of the processes are %q", got)
	}
	if err := CreateCgroups(root, path.Join(root, "missing"), nil, reserve); err == nil {
		t.Error("no error for a cgroup that does not exist")
	}
}
