package image

import (
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/apigroup/image/record"
)

// FuzzReference checks that all parsers return the same registry for a reference that passes
// validation.
func FuzzReference(f *testing.F) {
	for _, seed := range []string{
		"registry.example.com:5000/team/app:v1", "app", "localhost/app", "[::1]:5000/a", "a@sha256:0123456789abcdef0123456789abcdef", "a//b", "a/b:c/d", "x\n", "a:b@c", "a.b/..",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if parse(text) != nil {
			return
		}
		if strings.ContainsAny(text, " \t\r\n\\\"'") {
			t.Errorf("%q is valid", text)
		}
		read, err := record.ParseReference(text)
		if err != nil {
			return // imports reject the reference
		}
		public, err := record.ParseReference("any")
		if err != nil {
			t.Fatal(err)
		}
		first, _, path := strings.Cut(text, "/")
		if named := path && (strings.ContainsAny(first, ".:") || first == "localhost"); named != (read.Registry == first) && read.Registry != public.Registry {
			t.Errorf("%q is at the registry %q", text, read.Registry)
		}
	})
}

// FuzzStreamPart checks that there is only one way to split a name such as ruby:latest.
func FuzzStreamPart(f *testing.F) {
	for _, seed := range []string{"ruby:latest", "ruby@sha256:00", ":", "a:b:c", "@", "a@@b", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		for _, separator := range []string{":", "@"} {
			if stream, rest, err := split(name, separator, "ImageStreamTag"); err == nil && (stream+separator+rest != name || strings.Contains(stream, separator)) {
				t.Errorf("%q is %q and %q", name, stream, rest)
			}
		}
	})
}

// FuzzPolicyConfiguration checks that no image policy configuration causes a panic.
func FuzzPolicyConfiguration(f *testing.F) {
	f.Add("{apiVersion: v1, kind: ImagePolicyConfig, resolveImages: Attempt, executionRules: [{name: a, onResources: [{resource: pods}], matchImageLabels: [{matchLabels: {a: b}}]}]}")
	f.Add("executionRules: [{}]")
	f.Fuzz(func(_ *testing.T, text string) { _, _ = readPolicy(strings.NewReader(text)) })
}
