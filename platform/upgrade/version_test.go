package upgrade

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheckComparesRecordedVersion(t *testing.T) {
	path := filepath.Join(t.TempDir(), "version")
	file := VersionFile(path)
	if err := file.Check("v1.2.3"); err != nil {
		t.Errorf("new data: %v", err)
	}
	if err := file.Record("v1.37.2"); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("the file is %v, %v", info, err)
	}
	for program, refused := range map[string]bool{"v1.37.2": false, "v1.38.0": false, "v1.40.0": true, "v1.36.0": true} {
		if err := file.Check(program); err != nil != refused {
			t.Errorf("%s: %v", program, err)
		}
	}
	if same, other := file.Former("v1.37.2"), file.Former("v1.38.0"); same != "" || other != "v1.37.2" {
		t.Errorf("the former version is %q, and %q for another program", same, other)
	}
	for range 2 { // in the second pass, the file does not exist
		if err := file.Remove(); err != nil {
			t.Fatal(err)
		}
	}
	if err := file.Check("v1.2.3"); err != nil {
		t.Errorf("after the removal: %v", err)
	}
}

func TestDamagedVersionIsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "version")
	if err := os.WriteFile(path, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := VersionFile(path).Check("v1.37.2"); err == nil || !strings.Contains(err.Error(), "read Kubernetes version") {
		t.Errorf("got %v", err)
	}
}
