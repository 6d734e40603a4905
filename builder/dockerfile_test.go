package builder

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestAdaptDockerfile(t *testing.T) {
	env := []corev1.EnvVar{{Name: "A", Value: `say "hi" for $5 \o/`}}
	for name, tt := range map[string]struct {
		text, from string
		env        []corev1.EnvVar
		want       string
	}{
		"unchanged":   {text: "# comment\nFROM a\nRUN x\n", want: "# comment\nFROM a\nRUN x\n"},
		"other image": {text: "FROM a\nRUN x", from: "b@sha256:1", want: "FROM b@sha256:1\nRUN x"},
		"image of the last stage": {
			text: "FROM a AS one\nRUN x\nfrom --platform=linux/amd64 \\\n  b as two\nRUN y", from: "c",
			want: "FROM a AS one\nRUN x\nFROM --platform=linux/amd64 c as two\nRUN y",
		},
		"variables in each stage": {
			text: "FROM a\nFROM b\nRUN x", env: env,
			want: "FROM a\nENV A=\"say \\\"hi\\\" for \\$5 \\\\o/\"\nFROM b\nENV A=\"say \\\"hi\\\" for \\$5 \\\\o/\"\nRUN x",
		},
		"other escape character":  {text: "# escape=`\nFROM a", env: []corev1.EnvVar{{Name: "A", Value: "$x`"}}, want: "# escape=`\nFROM a\nENV A=\"`$x``\""},
		"FROM in a here-document": {text: "FROM a\nRUN <<E\nFROM b\nE\n", from: "c", want: "FROM c\nRUN <<E\nFROM b\nE\n"},
	} {
		got, err := adapt([]byte(tt.text), tt.from, tt.env)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(tt.want, string(got)); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

func TestAdaptRejectsInvalidDockerfile(t *testing.T) {
	for text, want := range map[string]string{"RUN x": "it has no FROM", "": "parse Dockerfile", "FROM a": "variable \"A\""} {
		if _, err := adapt([]byte(text), "", []corev1.EnvVar{{Name: "A", Value: "x\nRUN evil"}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
