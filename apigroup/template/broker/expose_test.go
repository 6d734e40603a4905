package broker

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/slipway-platform/slipway/internal/osbserver"
	"github.com/slipway-platform/slipway/internal/singlepath"
)

// database returns a Secret or a Service with annotations.
func database(t *testing.T, kind string, annotations map[string]string) *unstructured.Unstructured {
	t.Helper()
	var object runtime.Object = &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "db", Annotations: annotations}, Data: map[string][]byte{"password": []byte("p\xc3\xa4ss"), "key": {0, 255}},
	}
	if kind == "Service" {
		object = &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "db", Annotations: annotations}, Spec: corev1.ServiceSpec{
			ClusterIP: "172.30.1.2", Ports: []corev1.ServicePort{{Name: "sql", Port: 5432}, {Name: "web", Port: 80}},
		}}
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		t.Fatal(err)
	}
	result := &unstructured.Unstructured{Object: content}
	result.SetAPIVersion("v1")
	result.SetKind(kind)
	return result
}

func TestAnnotationsExposeValues(t *testing.T) {
	for template, want := range map[string]struct{ kind, plain, encoded string }{
		`{.data.password}`:                               {"Secret", "päss", "cMOkc3M="},
		`{.data['key']}`:                                 {"Secret", "\x00\xff", "AP8="},
		`{.metadata.name}:{.data.password}`:              {"Secret", "db:päss", "db:cMOkc3M="},
		`{.data.absent}`:                                 {"Secret", "", ""},
		`sql://{.spec.clusterIP}:{.spec.ports[0].port}/`: {"Service", "sql://172.30.1.2:5432/", "sql://172.30.1.2:5432/"},
		`{.spec.ports[?(@.name=="web")].port}`:           {"Service", "80", "80"},
		`{.spec.publishNotReadyAddresses}`:               {"Service", "", ""},
		`plain`:                                          {"Service", "plain", "plain"},
	} {
		for prefix, value := range map[string]string{exposePrefix: want.plain, base64ExposePrefix: want.encoded} {
			matches := map[string]string{}
			if err := expose(matches, database(t, want.kind, map[string]string{prefix + "it": template, prefix: "{", "other": "{"})); err != nil {
				t.Errorf("%s of %s: %v", template, want.kind, err)
			}
			if len(matches) != 1 || matches["it"] != value {
				t.Errorf("%s of %s with %s: %q, want %q", template, want.kind, prefix, matches, value)
			}
		}
	}
}

func TestExposedRejectsExpensiveExpressions(t *testing.T) {
	for name, tt := range map[string]struct {
		annotations map[string]string
		want        string
	}{
		"syntax":    {map[string]string{exposePrefix + "a": "{.spec"}, "annotation template.openshift.io/expose-a: parse JSONPath"},
		"several":   {map[string]string{exposePrefix + "a": `{.spec.ports[0:2].port}`}, "has 2 values"},
		"wildcard":  {map[string]string{exposePrefix + "a": "{.spec.*}"}, "not ranges, unions"},
		"recursion": {map[string]string{exposePrefix + "a": "x{..}{..}"}, "not ranges, unions"},
		"union":     {map[string]string{exposePrefix + "a": "{['spec','spec']['type','type']}"}, "not ranges, unions"},
		"range":     {map[string]string{exposePrefix + "a": "{range .spec.ports[0:2]}{.port}{end}"}, "not ranges, unions"},
		"condition": {map[string]string{exposePrefix + "a": "{.spec.ports[?(@..name=='a')]}"}, "not ranges, unions"},
		"long":      {map[string]string{exposePrefix + "a": strings.Repeat("a", singlepath.MaxLength+1)}, "the limit is 1024"},
		"large": {map[string]string{
			exposePrefix + "a": "{.metadata.annotations.text}", exposePrefix + "b": "{.metadata.annotations.text}", "text": strings.Repeat("x", maxExposed/2+1),
		}, "expose-b: an instance can expose at most 1048576 bytes"},
		"structure": {map[string]string{exposePrefix + "a": "{.spec}"}, "has a map"},
		"twice":     {map[string]string{exposePrefix + "a": "x", base64ExposePrefix + "a": "y"}, `another annotation exposes "a" too`},
	} {
		err := expose(map[string]string{}, database(t, "Service", tt.annotations))
		if code, _ := osbserver.Code(err); err == nil || code != 400 || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}

func TestExposedLimitsNumberOfValues(t *testing.T) {
	annotations := map[string]string{}
	for i := range maxCredentials {
		annotations[fmt.Sprint(exposePrefix, i)] = "value"
	}
	matches := map[string]string{}
	if err := exposed(matches, annotations, nil); err != nil || len(matches) != maxCredentials {
		t.Errorf("%d values are exposed: %v", len(matches), err)
	}
	if err := exposed(matches, map[string]string{exposePrefix + "more": "value"}, nil); err == nil || !strings.Contains(err.Error(), "at most 100 values") {
		t.Errorf("one more: %v", err)
	}
}
