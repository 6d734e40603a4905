package boot

import (
	"os"
	"path/filepath"
	"testing"
)

func TestIDChangesWhenContainerRestarts(t *testing.T) {
	identity := func(startTime string) string {
		proc := t.TempDir()
		for path, content := range map[string]string{
			"sys/kernel/random/boot_id": "0f0e\n",
			"1/stat":                    "1 (an (odd) name) S 0 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 " + startTime + " 22 23",
		} {
			path = filepath.Join(proc, path)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := ID(proc)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got, want := identity("777"), "0f0e 777"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
