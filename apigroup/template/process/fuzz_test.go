package process

import (
	"encoding/json"
	"strings"
	"testing"

	templatev1 "github.com/openshift/api/template/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// FuzzTemplate checks that a processed object is JSON of bounded size, and that the same seeds
// produce the same objects.
func FuzzTemplate(f *testing.F) {
	f.Add(`{"kind":"Pod","metadata":{"name":"${A}","namespace":"x","labels":{"a":"b"}},"n":"${{B}}"}`, "user[A-Z0-9]{4}", `{"x":1}`)
	f.Add(`{"metadata":null,"${A}":"${${A}}"}`, `[\w\d\a\A]{255}`, "${A}")
	f.Add(`{"metadata":{"labels":[]}}`, "[a-]{3}", "")
	f.Add("null", "[]{1}", "null")
	f.Add("[1]", "[z-a]{1}", "\xff")
	f.Fuzz(func(t *testing.T, object, expression, value string) {
		process := func() *templatev1.Template {
			template := &templatev1.Template{
				Parameters: []templatev1.Parameter{{Name: "A", Generate: "expression", From: expression}, {Name: "B", Value: value}},
				Objects:    []runtime.RawExtension{{Raw: []byte(object)}}, ObjectLabels: map[string]string{"from": "${A}"}, Message: "${B}",
			}
			if len(Seeded(template, func(string) (seed [32]byte) { return seed })) > 0 {
				return nil
			}
			return template
		}
		first, template := process(), process()
		if first == nil {
			return
		}
		data := first.Objects[0].Raw
		if !json.Valid(data) || string(template.Objects[0].Raw) != string(data) {
			t.Errorf("%q and %q", data, template.Objects[0].Raw)
		}
		if maximum := maxInserted + 6*len(object) + 1024; len(data) > maximum {
			t.Errorf("%d bytes become %d", len(object), len(data))
		}
	})
}

// FuzzExpression checks that text outside ranges is left unchanged.
func FuzzExpression(f *testing.F) {
	for _, seed := range []string{"[a-z]{8}", `[\w]{1}-[\A]{2}`, "[9-0]{1}", "[a]{0}", "[a]{99999999999999999999}", "plain", "[[a]{1}]{1}"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, pattern string) {
		value, err := Expression(pattern, [32]byte{1})
		if err == nil && !strings.Contains(pattern, "[") && value != pattern {
			t.Errorf("%q becomes %q", pattern, value)
		}
		if len(value) > len(pattern)+maxValue {
			t.Errorf("%q becomes %d characters", pattern, len(value))
		}
	})
}
