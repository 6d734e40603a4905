package newapp

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

// FuzzDockerfile checks that no Dockerfile makes `oc new-app` panic, and that every valid
// Dockerfile has a base image.
func FuzzDockerfile(f *testing.F) {
	for _, seed := range []string{"FROM a\nEXPOSE 8080/tcp $PORT\n", "ARG A=b\nFROM ${A:-c} AS d\nFROM d", "FROM --platform=x", "FROM ${", "ARG\nEXPOSE", "FROM a \\\n as b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if file, err := ParseDockerfile(text); err == nil && file.From == "" {
			t.Errorf("%q has no base image", text)
		}
	})
}

// FuzzName checks that Name returns a valid service name or "" for every image and repository.
func FuzzName(f *testing.F) {
	for _, seed := range []string{"https://example.com/a/My_App.git#main", "git@example.com:x.git", "registry:5000/a/b:c@sha256:0", "---", "9a", "ä", "a/"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, from string) {
		name := Name(from)
		if reasons := validation.IsDNS1035Label(name); name != "" && len(reasons) > 0 {
			t.Errorf("%q results in %q: %v", from, name, reasons)
		}
	})
}
