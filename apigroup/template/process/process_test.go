package process

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	templatev1 "github.com/openshift/api/template/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func sample(object string, parameters ...templatev1.Parameter) *templatev1.Template {
	return &templatev1.Template{Parameters: parameters, Objects: []runtime.RawExtension{{Raw: []byte(object)}}}
}

func TestReferencesAreReplaced(t *testing.T) {
	parameters := []templatev1.Parameter{{Name: "NAME", Value: "web"}, {Name: "COUNT", Value: "3"}, {Name: "EMPTY"}, {Name: "LIST", Value: `["a"]`}}
	for name, tt := range map[string]struct{ object, want string }{
		"text":                   {`{"a": "${NAME}-x-${NAME}"}`, `{"a": "web-x-web"}`},
		"number as text":         {`{"a": "${COUNT}"}`, `{"a": "3"}`},
		"number":                 {`{"a": "${{COUNT}}"}`, `{"a": 3}`},
		"list":                   {`{"a": "${{LIST}}"}`, `{"a": ["a"]}`},
		"text in double braces":  {`{"a": "${{NAME}}"}`, `{"a": "web"}`},
		"part of a text":         {`{"a": "x${{COUNT}}"}`, `{"a": "x${{COUNT}}"}`},
		"key":                    {`{"${NAME}": 1}`, `{"web": 1}`},
		"within lists":           {`{"a": [{"b": "${NAME}"}, "${COUNT}"]}`, `{"a": [{"b": "web"}, "3"]}`},
		"unknown":                {`{"a": "${OTHER} ${{OTHER}}"}`, `{"a": "${OTHER} ${{OTHER}}"}`},
		"empty":                  {`{"a": "x${EMPTY}y"}`, `{"a": "xy"}`},
		"large number":           {`{"a": 9007199254740993}`, `{"a": 9007199254740993}`},
		"namespace":              {`{"metadata": {"namespace": "other"}}`, `{"metadata": {}}`},
		"namespace of any type":  {`{"metadata": {"namespace": "${{NAME}}"}}`, `{"metadata": {}}`},
		"namespace of parameter": {`{"metadata": {"namespace": "${NAME}"}}`, `{"metadata": {"namespace": "web"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			template := sample(tt.object, parameters...)
			if errs := Template(template); len(errs) > 0 {
				t.Fatal(errs)
			}
			var got, want any
			read(t, template.Objects[0].Raw, &got)
			read(t, []byte(tt.want), &want)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("object (-want +got):\n%s", diff)
			}
		})
	}
}

func read(t *testing.T, text []byte, into *any) {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.UseNumber()
	if err := decoder.Decode(into); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

func TestLabelsAndMessageAreFilledIn(t *testing.T) {
	template := sample(`{"metadata": {"labels": {"own": "1"}}}`, templatev1.Parameter{Name: "NAME", Value: "web"})
	template.ObjectLabels = map[string]string{"app": "${NAME}"}
	template.Message = "made ${NAME}"
	if errs := Template(template); len(errs) > 0 {
		t.Fatal(errs)
	}
	if got := string(template.Objects[0].Raw); got != `{"metadata":{"labels":{"app":"web","own":"1"}}}` || template.Message != "made web" {
		t.Errorf("object %s, message %q", got, template.Message)
	}
}

func TestValuesAreGenerated(t *testing.T) {
	template := sample("{}", templatev1.Parameter{Name: "PASSWORD", Generate: "expression", From: "x[a-f0-9]{8}"},
		templatev1.Parameter{Name: "GIVEN", Generate: "expression", From: "[a-z]{8}", Value: "given"})
	if errs := Template(template); len(errs) > 0 {
		t.Fatal(errs)
	}
	if got := template.Parameters[0].Value; !regexp.MustCompile(`^x[a-f0-9]{8}$`).MatchString(got) {
		t.Errorf("generated %q", got)
	}
	if got := template.Parameters[1].Value; got != "given" {
		t.Errorf("a value of the user became %q", got)
	}
}

func TestTemplateReportsMissingValues(t *testing.T) {
	for name, parameter := range map[string]templatev1.Parameter{
		"required without value": {Name: "A", Required: true},
		"unknown generator":      {Name: "A", Generate: "dice", From: "x"},
		"no expression":          {Name: "A", Generate: "expression"},
		"backwards":              {Name: "A", Generate: "expression", From: "[z-a]{3}"},
		"too long":               {Name: "A", Generate: "expression", From: "[a-z]{256}"},
	} {
		if errs := Template(sample("{}", parameter)); len(errs) != 1 || !strings.HasPrefix(errs[0].Field, "template.parameters[0]") {
			t.Errorf("%s: %v", name, errs)
		}
	}
}

func TestExpressions(t *testing.T) {
	for pattern, want := range map[string]string{
		`plain`:                    `^plain$`,
		`[\w]{20}`:                 `^\w{20}$`,
		`[\d]{1}-[\a]{255}`:        `^\d-[a-zA-Z0-9]{255}$`,
		`[\A]{30}`:                 `^[^a-zA-Z0-9]{30}$`,
		`admin[A-Z]{2}[a-c1-2]{4}`: `^admin[A-Z]{2}[abc12]{4}$`,
		`[a-z]`:                    `^\[a-z\]$`,
	} {
		got, err := Expression(pattern, unpredictable(""))
		if err != nil || !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("%s: %q, %v", pattern, got, err)
		}
	}
}

func TestGeneratedCharactersAreBounded(t *testing.T) {
	if _, err := Expression(strings.Repeat(`[a]{255}`, 300), unpredictable("")); err == nil || !strings.Contains(err.Error(), "65536") {
		t.Errorf("76,500 characters: %v", err)
	}
}

func TestValuesAreBounded(t *testing.T) {
	long := templatev1.Parameter{Name: "A", Value: strings.Repeat("x", 1<<20)}
	for name, template := range map[string]*templatev1.Template{
		"object":  sample(`{"a": "`+strings.Repeat("${A}", 100)+`"}`, long),
		"message": {Message: strings.Repeat("${A}", 100), Parameters: []templatev1.Parameter{long}},
	} {
		if errs := Template(template); len(errs) != 1 || !strings.Contains(errs[0].Error(), "16 MiB") {
			t.Errorf("%s: %v", name, errs)
		}
	}
}

func TestSameSeedGeneratesSameValue(t *testing.T) {
	generate := func(seed byte) string {
		template := sample("{}", templatev1.Parameter{Name: "PASSWORD", Generate: "expression", From: "[a-zA-Z0-9]{16}"})
		if errs := Seeded(template, func(string) [32]byte { return [32]byte{seed} }); len(errs) > 0 {
			t.Fatal(errs)
		}
		return template.Parameters[0].Value
	}
	if name, second, other := generate(1), generate(1), generate(2); name != second || name == other {
		t.Errorf("values are %q and %q, and %q with another seed", name, second, other)
	}
}
