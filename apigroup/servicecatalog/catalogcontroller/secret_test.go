package catalogcontroller

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/apigroup/servicecatalog/v1beta1"
)

func secrets(objects ...*corev1.Secret) *reconciler {
	var all []runtime.Object
	for _, object := range objects {
		all = append(all, object)
	}
	return &reconciler{kube: fake.NewClientset(all...), secret: []byte("key")}
}

func secret(name string, data map[string]string) *corev1.Secret {
	object := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string][]byte{}}
	for key, value := range data {
		object.Data[key] = []byte(value)
	}
	return object
}

func TestSecretTransforms(t *testing.T) {
	r := secrets(secret("more", map[string]string{"a": "from-more", "b": "2"}))
	credentials := map[string]any{"a": "1", "port": 5432.0, "nested": map[string]any{"host": "db"}}
	for transforms, want := range map[string]string{
		`[]`: `a=1 nested={"host":"db"} port=5432`,
		`[{renameKey: {from: a, to: z}}, {renameKey: {from: none, to: y}}, {removeKey: {key: nested}}]`:     `port=5432 z=1`,
		`[{addKey: {key: host, jsonPathExpression: "{.nested.host}"}}, {removeKey: {key: nested}}]`:         `a=1 host=db port=5432`,
		`[{addKey: {key: a, stringValue: x}}, {addKey: {key: b, value: eQ==}}, {removeKey: {key: nested}}]`: `a=x b=y port=5432`,
		`[{addKeysFrom: {secretRef: {name: more}}}, {removeKey: {key: nested}}]`:                            `a=from-more b=2 port=5432`,
		`[{addKey: {key: a, jsonPathExpression: "{.none}"}}]`:                                               `error: does not match`,
		`[{addKey: {key: a, jsonPathExpression: "{..a..a}"}}]`:                                              `error: descendants`,
		`[{addKeysFrom: {secretRef: {name: absent}}}]`:                                                      `error: not found`,
	} {
		binding := &v1beta1.ServiceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}}
		if err := yaml.Unmarshal([]byte(transforms), &binding.Spec.SecretTransforms); err != nil {
			t.Fatal(err)
		}
		data, err := r.secretData(t.Context(), binding, credentials)
		var texts []string
		for _, key := range slices.Sorted(maps.Keys(data)) {
			texts = append(texts, fmt.Sprintf("%s=%s", key, data[key]))
		}
		got := strings.Join(texts, " ")
		if message, isError := strings.CutPrefix(want, "error: "); isError && err != nil && strings.Contains(err.Error(), message) {
			continue
		}
		if err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", transforms, got, err, want)
		}
	}
}

func TestParametersHideSecrets(t *testing.T) {
	r := secrets(secret("s", map[string]string{"json": `{"password": "hidden"}`, "list": "[hidden]"}))
	from := func(key string) []v1beta1.ParametersFromSource {
		return []v1beta1.ParametersFromSource{{SecretKeyRef: &v1beta1.SecretKeyReference{Name: "s", Key: key}}}
	}
	long := "a: &a " + strings.Repeat("x", 10_000) + "\nb: [" + strings.Repeat("*a,", 1000) + "]"
	if _, err := secrets(secret("s", map[string]string{"json": long})).parameters(t.Context(), namespace, nil, from("json"), nil); err == nil || !strings.Contains(err.Error(), "or has more than") {
		t.Errorf("aliases expand: %v", err)
	}
	inline := &runtime.RawExtension{Raw: []byte(`{"size": 1}`)}
	got, err := r.parameters(t.Context(), namespace, inline, from("json"), map[string]any{"size": 0, "tier": "free"})
	if err != nil || fmt.Sprint(got.values) != "map[password:hidden size:1 tier:free]" {
		t.Errorf("values %v, %v", got.values, err)
	}
	if public := string(got.public.Raw); public != `{"password":"\u003credacted\u003e","size":1,"tier":"free"}` {
		t.Errorf("public values %s", public)
	}
	other := secrets(secret("s", map[string]string{"json": `{"password": "hidden"}`}))
	other.secret = []byte("other key")
	if same, err := other.parameters(t.Context(), namespace, inline, from("json"), map[string]any{"size": 0, "tier": "free"}); err != nil || same.checksum == got.checksum {
		t.Errorf("the checksum does not depend on the key: %v", err)
	}
	for want, attempt := range map[string][]v1beta1.ParametersFromSource{
		"has no key":       from("none"),
		"is not a JSON":    from("list"),
		`"password" is in`: append(from("json"), from("json")...),
		`secrets "x" not`:  {{SecretKeyRef: &v1beta1.SecretKeyReference{Name: "x", Key: "y"}}},
	} {
		if _, err := r.parameters(t.Context(), namespace, nil, attempt, nil); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hidden") {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
