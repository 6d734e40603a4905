package componenttest

import (
	"os"
	"testing"
)

// ShortDir returns a new directory that is removed when the test ends. Its path is short enough for
// Unix sockets, unlike the path of t.TempDir, which contains the test's name.
func ShortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
