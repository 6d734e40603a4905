package kit

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// OtherVersion returns the path of a copy of bin/slipway and the copy's version, which differs in
// the last character. The copy is removed at the end of the test. Create it before the clusters
// that use it, so that it is removed after them.
func OtherVersion(t testing.TB) (program, version string) {
	t.Helper()
	repository, err := findRepository()
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(repository, "bin", "slipway"))
	if err != nil {
		t.Fatal(err)
	}
	former := versionOf(t, filepath.Join(repository, "bin", "slipway"))
	last := byte('0')
	if former[len(former)-1] == last {
		last = '1'
	}
	version = former[:len(former)-1] + string(last)
	program = filepath.Join(t.TempDir(), "slipway")
	// Replace the version that the linker stored in the program.
	if err := os.WriteFile(program, bytes.ReplaceAll(content, []byte(former), []byte(version)), 0o755); err != nil {
		t.Fatal(err)
	}
	if got := versionOf(t, program); got != version {
		t.Fatalf("the copy has the version %q, want %q", got, version)
	}
	return program, version
}

func versionOf(t testing.TB, program string) string {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), program, "version", "-o", "json").Output()
	if err != nil {
		t.Fatalf("read version of %s: %v", program, err)
	}
	var result struct{ Slipway string }
	if err := json.Unmarshal(output, &result); err != nil || result.Slipway == "" {
		t.Fatalf("read version of %s: %v: %s", program, err, output)
	}
	return result.Slipway
}
