package teardown

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestContainerLogsRemovesLinksOfHost(t *testing.T) {
	for name, tt := range map[string]struct {
		links map[string]string
		want  []string
	}{
		"links of the host":     {map[string]string{"a.log": "/data/kubelet/pod-logs/a/0.log"}, nil},
		"links of another host": {map[string]string{"a.log": "/data/kubelet/a", "b.log": "/data/kubelet-2/b"}, []string{"b.log"}},
		"none":                  {nil, nil},
	} {
		dir := filepath.Join(t.TempDir(), "containers")
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for link, target := range tt.links {
			if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 { // the command can be repeated
			if err := ContainerLogs(dir, "/data/kubelet"); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if got := names(dir); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q remains, want %q", name, got, tt.want)
		}
		if _, err := os.Stat(dir); (err == nil) != (len(tt.want) > 0) {
			t.Errorf("%s: the directory: %v", name, err)
		}
	}
}

// names returns the sorted names of the files in a directory, or nothing if the directory is
// missing.
func names(dir string) (all []string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	for _, entry := range entries {
		all = append(all, entry.Name())
	}
	return all
}

func TestOnlyEmptyDirectoriesAreRemoved(t *testing.T) {
	parent := t.TempDir()
	child := filepath.Join(parent, "cache", "results")
	if err := os.MkdirAll(child, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(parent, "cache", "notes"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the command can be repeated
		if err := RemoveEmpty(child, filepath.Dir(child)); err != nil {
			t.Error(err)
		}
		if got := names(filepath.Dir(child)); !slices.Equal(got, []string{"notes"}) {
			t.Errorf("%q remains", got)
		}
	}
}
