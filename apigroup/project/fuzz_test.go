package project

import (
	"encoding/json"
	"testing"

	templatev1 "github.com/openshift/api/template/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// FuzzExpand checks that a value from a project request never extends beyond a single string of the
// template's objects.
func FuzzExpand(f *testing.F) {
	f.Add("A shop", `{"apiVersion":"v1","kind":"Project","metadata":{"name":"${NAME}","annotations":{"a":"x${NAME}y"}}}`)
	f.Add(`","admin":true,"x":"`, `{"apiVersion":"v1","kind":"Project","metadata":{"name":"${NAME}"}}`)
	f.Add("${NAME}", `{"apiVersion":"v1","kind":"X","metadata":{"name":"${${NAME}}${"}}`)
	f.Add("", "null")
	f.Fuzz(func(t *testing.T, value, object string) {
		template := &templatev1.Template{
			Objects: []runtime.RawExtension{{Raw: []byte(object)}}, ObjectLabels: map[string]string{"of": "${NAME}"}, Parameters: []templatev1.Parameter{{Name: "NAME"}},
		}
		objects, err := expand(template, map[string]string{"NAME": value})
		if err != nil {
			return
		}
		plain, err := expand(template, map[string]string{"NAME": "x"})
		if err != nil {
			return // the value is invalid, such as an empty name
		}
		if got, want := shape(t, objects[0].Object), shape(t, plain[0].Object); got != want {
			t.Errorf("%q gives %s, want %s", value, got, want)
		}
	})
}

// shape returns an object as JSON with all strings emptied.
func shape(t *testing.T, object map[string]any) string {
	var empty func(any) any
	empty = func(value any) any {
		switch typed := value.(type) {
		case string:
			return ""
		case []any:
			for i := range typed {
				typed[i] = empty(typed[i])
			}
		case map[string]any:
			for key := range typed {
				typed[key] = empty(typed[key])
			}
		}
		return value
	}
	text, err := json.Marshal(empty(object))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
