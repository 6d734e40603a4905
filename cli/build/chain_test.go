package build

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/cli/objects/objectstest"
)

// TestBuildChainsArePrinted uses a cycle of builds, in which the last build produces the input of
// the first build.
func TestBuildChainsArePrinted(t *testing.T) {
	client := objectstest.Client(objectstest.Load(t, "testdata/build-chain.yaml"), [2]string{"build.openshift.io/v1", "BuildConfig"})
	show := func(b buildChain, tag string) (string, error) {
		var out bytes.Buffer
		b.client, b.namespace, b.out = client, "shop", &out
		err := b.run(t.Context(), tag)
		return out.String(), err
	}
	for name, tt := range map[string]struct {
		chain     buildChain
		tag, want string
	}{
		"what follows": {buildChain{triggerOnly: true}, "ruby:2.5",
			"istag/ruby:2.5\n\tbc/app\n\t\tistag/app:latest\n\t\t\tbc/tuned\n\t\t\t\tistag/ruby:2.5\n"},
		"all inputs":   {buildChain{}, "assets", "istag/assets:latest\n\tbc/app\n\t\tistag/app:latest\n\t\t\tbc/tuned\n\t\t\t\tistag/ruby:2.5\n\t\t\t\t\tbc/app\n\t\t\t\t\tbc/byhand\n\t\t\t\t\t\tistag/byhand:latest\n"},
		"predecessors": {buildChain{reverse: true}, "byhand", "istag/byhand:latest\n\tbc/byhand\n\t\tistag/ruby:2.5\n\t\t\tbc/tuned\n\t\t\t\tistag/app:latest\n\t\t\t\t\tbc/app\n\t\t\t\t\t\tistag/ruby:2.5\n\t\t\t\t\t\tistag/assets:latest\n"},
		"no build":     {buildChain{}, "byhand", "istag/byhand:latest\n"},
		"all projects": {buildChain{triggerOnly: true, all: true}, "shop/app:latest",
			"<shop istag/app:latest>\n\t<other bc/far>\n\t<shop bc/tuned>\n\t\t<shop istag/ruby:2.5>\n\t\t\t<shop bc/app>\n\t\t\t\t<shop istag/app:latest>\n"},
		"a graph": {buildChain{triggerOnly: true, output: "dot"}, "app",
			"digraph \"app:latest\" {\n  \"istag/app:latest\";\n  \"bc/tuned\";\n  \"istag/ruby:2.5\";\n  \"bc/app\";\n" +
				"  \"bc/app\" -> \"istag/app:latest\";\n  \"istag/ruby:2.5\" -> \"bc/app\";\n  \"bc/tuned\" -> \"istag/ruby:2.5\";\n  \"istag/app:latest\" -> \"bc/tuned\";\n}\n"},
	} {
		got, err := show(tt.chain, tt.tag)
		if err != nil || got != tt.want {
			t.Errorf("%s: %v\n%s\nwant\n%s", name, err, got, tt.want)
		}
	}
	text, err := show(buildChain{triggerOnly: true, output: "json"}, "ruby:2.5")
	var root link
	if err != nil || json.Unmarshal([]byte(text), &root) != nil || len(root.Next) != 1 || root.Next[0].Name != "app" {
		t.Errorf("json: %v\n%s", err, text)
	}
	for tag, want := range map[string]string{"none": "no build config uses", "ruby:2.5": "must be dot or json"} {
		b := buildChain{triggerOnly: true}
		if tag == "ruby:2.5" {
			b.output = "yaml"
		}
		if _, err := show(b, tag); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", tag, err, want)
		}
	}
}
