package command

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestFailedStartPrintsLogOrNamesJournal(t *testing.T) {
	log := filepath.Join(t.TempDir(), "slipway.log")
	if err := os.WriteFile(log, []byte("etcd: disk is full\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		log:                                  "\nlast lines of " + log + ":\n    etcd: disk is full\n\n",
		filepath.Join(t.TempDir(), "absent"): "\nTo see the log, run: journalctl -u slipway\n\n",
	} {
		var out bytes.Buffer
		err := startFailure(&out, "etcd was not ready in time", path)
		if err == nil || err.Error() != "start failed: etcd was not ready in time" || out.String() != want {
			t.Errorf("startFailure(%q): %q, %v, want %q", path, out.String(), err, want)
		}
	}
}
