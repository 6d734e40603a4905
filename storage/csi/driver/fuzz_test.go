package driver

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

// FuzzName checks that an accepted driver name is valid in paths, labels and object names.
func FuzzName(f *testing.F) {
	for _, seed := range []string{"local.csi.example.com", "a/../b", "A_b", "", "a\n", "ä", strings.Repeat("a", 64), "-a"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		sanitized := SanitizeName(name)
		if CheckName(name) != nil {
			return
		}
		if reasons := validation.IsValidLabelValue(name); len(reasons) > 0 || strings.ContainsAny(name, "/\\") || name == ".." {
			t.Errorf("%q: accepted, but %v", name, reasons)
		}
		if reasons := validation.IsDNS1123Label("a" + sanitized + "a"); len(sanitized) < 60 && len(reasons) > 0 {
			t.Errorf("%q: got %q: %v", name, sanitized, reasons)
		}
	})
}
