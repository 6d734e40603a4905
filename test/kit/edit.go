package kit

import (
	"os"
	"strings"
	"testing"
)

// Edit replaces the only occurrence of a string in a file.
func Edit(t testing.TB, path, former, text string) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(string(content), former) != 1 {
		t.Fatalf("%s does not contain %q once:\n%s", path, former, content)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(content), former, text, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
}
