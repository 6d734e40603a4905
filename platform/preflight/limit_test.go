package preflight

import (
	"os"
	"path/filepath"
	"testing"
)

func TestLimitsAreRaisedButNeverLowered(t *testing.T) {
	h := healthy(t)
	const instances, watches, files = "proc/sys/fs/inotify/max_user_instances", "proc/sys/fs/inotify/max_user_watches", "proc/sys/fs/file-max"
	h.write(t, instances, "128\n")
	h.write(t, watches, "1048576\n")
	h.write(t, files, "2466177\n")
	limits := append(Limits(), Limit{"kernel.unknown_to_this_one", 1, "nothing happens"})
	for range 2 {
		must(t, Raise(h.Root, limits))
		for path, want := range map[string]string{instances: "8192", watches: "1048576\n", files: "9223372036854775807"} {
			got, err := os.ReadFile(filepath.Join(h.Root, path))
			if must(t, err); string(got) != want {
				t.Errorf("%s is %q, want %q", path, got, want)
			}
		}
	}
	h.write(t, instances, "many")
	if err := Raise(h.Root, limits); err == nil {
		t.Error("no error for a limit that is not a number")
	}
}

func TestKernelSupportsEveryLimit(t *testing.T) {
	for _, limit := range Limits() {
		if _, ok, err := limit.value("/"); err != nil || !ok {
			t.Errorf("limit %s: known %t, error %v", limit.Name, ok, err)
		}
	}
}
