package serviceca

import (
	"encoding/base64"
	"encoding/json"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestInjectByKind(t *testing.T) {
	encoded := base64.StdEncoding.EncodeToString([]byte("PEM"))
	for input, want := range map[string]string{
		`{"kind":"ConfigMap"}`:                                                          `{"data":{"service-ca.crt":"PEM"},"kind":"ConfigMap"}`,
		`{"kind":"ConfigMap","data":{"a":"b"}}`:                                         `{"data":{"a":"b","service-ca.crt":"PEM"},"kind":"ConfigMap"}`,
		`{"kind":"APIService","spec":{"caBundle":"b2xk"}}`:                              `{"kind":"APIService","spec":{"caBundle":"` + encoded + `"}}`,
		`{"kind":"CustomResourceDefinition","spec":{"conversion":{"strategy":"None"}}}`: "",
		`{"kind":"CustomResourceDefinition","spec":{"conversion":{"webhook":{"clientConfig":{}}}}}`: `{"kind":"CustomResourceDefinition","spec":{"conversion":{"webhook":{"clientConfig":{"caBundle":"` +
			encoded + `"}}}}}`,
		`{"kind":"MutatingWebhookConfiguration","webhooks":[{"clientConfig":{}},{"clientConfig":{"caBundle":"` + encoded + `"}}]}`: `{"kind":"MutatingWebhookConfiguration","webhooks":[{"clientConfig":{"caBundle":"` +
			encoded + `"}},{"clientConfig":{"caBundle":"` + encoded + `"}}]}`,
		`{"kind":"ValidatingWebhookConfiguration"}`: "",
	} {
		object := &unstructured.Unstructured{}
		if err := json.Unmarshal([]byte(input), &object.Object); err != nil {
			t.Fatal(err)
		}
		changed := injectBundleInto(object, "PEM")
		got, err := json.Marshal(object.Object)
		if err != nil {
			t.Fatal(err)
		}
		if changed != (want != "") || changed && string(got) != want {
			t.Errorf("%s: got %s (changed: %t)", input, got, changed)
		}
		if injectBundleInto(object, "PEM") {
			t.Errorf("%s: the second call changes the object", input)
		}
	}
}
