package ansible

import (
	"encoding/json"
	"testing"
)

// FuzzSpec verifies that each image label results in an error or in a service whose schemas can be
// encoded. It also verifies that users' parameters can be checked against the service.
func FuzzSpec(f *testing.F) {
	f.Add(text, `{"password": "a", "size": 2}`)
	f.Add("{name: a, plans: [{name: a, parameters: [{name: p, type: int, default: {a: [1]}}]}]}", `{"p": []}`)
	f.Add("a: &a [*a]", "null")
	f.Fuzz(func(t *testing.T, label, parameters string) {
		spec, ok, err := specOf(image(t, label))
		if !ok {
			t.Fatalf("%q is not a bundle: %v", label, err)
		}
		if err != nil {
			return
		}
		b := &bundle{Namespace: "openshift", Stream: "db-apb", Spec: spec}
		if _, err := json.Marshal(serviceOf(b, spec.Name)); err != nil {
			t.Errorf("encode service of %q: %v", label, err)
		}
		var values map[string]any
		if json.Unmarshal([]byte(parameters), &values) != nil {
			return
		}
		for i := range spec.Plans {
			result, err := complete(spec.Plans[i].Parameters, values)
			if err == nil && len(result) > len(spec.Plans[i].Parameters) {
				t.Errorf("%q and %q give %v", label, parameters, result)
			}
		}
	})
}
