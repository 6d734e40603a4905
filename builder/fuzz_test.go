package builder

import (
	"bytes"
	"strings"
	"testing"

	"github.com/moby/buildkit/frontend/dockerfile/command"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	corev1 "k8s.io/api/core/v1"
)

// FuzzAdapt verifies that an adapted Dockerfile has the same stages, and that its last stage begins
// with the requested image.
func FuzzAdapt(f *testing.F) {
	for _, seed := range []string{
		"FROM a\nRUN x", "FROM a AS one\nfrom --platform=linux/amd64 \\\n  b as two\nRUN y", "# escape=`\nFROM a `\n AS b", "FROM a\nRUN <<E\nFROM b\nE\n", "FROM a\r\nRUN x\r\n",
		"\ufeffFROM a", "FROM a\\", "FROM \\\n# comment\na", "FROM a <<E\nE\n", "FROM\ta\v",
	} {
		f.Add([]byte(seed), `say "hi" $5 \`)
	}
	f.Fuzz(func(t *testing.T, dockerfile []byte, value string) {
		const image = "registry.example.com/base@sha256:0123"
		adapted, err := adapt(dockerfile, image, []corev1.EnvVar{{Name: "A", Value: value}})
		if err != nil {
			return
		}
		before, err := parser.Parse(bytes.NewReader(dockerfile))
		if err != nil {
			t.Fatal(err)
		}
		after, err := parser.Parse(bytes.NewReader(adapted))
		if err != nil {
			t.Fatalf("%q becomes %q: %v", dockerfile, adapted, err)
		}
		old, changed := stages(before), stages(after)
		if len(old) != len(changed) || changed[len(changed)-1].Next == nil || changed[len(changed)-1].Next.Value != image {
			t.Errorf("%q becomes %q", dockerfile, adapted)
		}
		if got, want := len(after.AST.Children), len(before.AST.Children)+len(old); got != want {
			t.Errorf("%q with %q becomes %q: %d instructions, want %d", dockerfile, value, adapted, got, want)
		}
	})
}

func stages(parsed *parser.Result) (all []*parser.Node) {
	for _, node := range parsed.AST.Children {
		if strings.EqualFold(node.Value, command.From) {
			all = append(all, node)
		}
	}
	return all
}
