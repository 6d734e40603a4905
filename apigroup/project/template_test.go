package project

import (
	"strings"
	"testing"

	projectv1 "github.com/openshift/api/project/v1"
	templatev1 "github.com/openshift/api/template/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/slipway-platform/slipway/apigroup/project/standard"
)

func TestDefaultTemplateCreatesProjectAndAdministrator(t *testing.T) {
	template, err := standard.Template()
	if err != nil {
		t.Fatal(err)
	}
	objects, err := expand(template, map[string]string{
		standard.ProjectParameter: "shop", standard.DisplayNameParameter: "A shop", standard.DescriptionParameter: "", standard.AdminParameter: "alice", standard.RequesterParameter: "alice",
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(objects) != 2 || objects[0].GetName() != "shop" || objects[0].GetAnnotations()[requesterAnnotation] != "alice" {
		t.Errorf("objects are %v", objects)
	}
	if objects[1].GetKind() != "RoleBinding" || objects[1].GetNamespace() != "shop" {
		t.Errorf("binding is %v", objects[1])
	}
}

func TestExpandKeepsValuesAsStrings(t *testing.T) {
	template := &templatev1.Template{
		Parameters: []templatev1.Parameter{{Name: "A"}, {Name: "B", Value: "default"}},
		Objects: []runtime.RawExtension{{Raw: []byte(
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"},"data":{"a":"${A}${B}${C}","n":["${A}"],"o":"$ {A} ${A"}}`)}},
	}
	objects, err := expand(template, map[string]string{"A": `","x":"${B}`})
	if err != nil {
		t.Fatal(err)
	}
	data := objects[0].Object["data"].(map[string]any)
	if data["a"] != `","x":"${B}default${C}` || data["o"] != "$ {A} ${A" || data["n"].([]any)[0] != `","x":"${B}` {
		t.Errorf("data is %v", data)
	}
}

func TestExpandRejectsInvalidTemplates(t *testing.T) {
	for want, template := range map[string]*templatev1.Template{
		"parameter A is required": {Parameters: []templatev1.Parameter{{Name: "A", Required: true}}},
		"objects[0]":              {Objects: []runtime.RawExtension{{Raw: []byte(`[]`)}}},
		"lacks a kind":            {Objects: []runtime.RawExtension{{Raw: []byte(`{"metadata":{"name":"x"}}`)}}},
	} {
		if _, err := expand(template, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want %q", err, want)
		}
	}
}

func TestValidateRequestRejectsInvalidNames(t *testing.T) {
	for name, ok := range map[string]bool{
		"shop": true, "a1": true, strings.Repeat("a", 63): true,
		"a": false, "": false, strings.Repeat("a", 64): false, "Shop": false, "a.b": false, "a/b": false, "a:b": false, "~": false, "ä": false, "-a": false,
		"default": false, "openshift": false, "openshift-x": false, "kube-x": false, "kubernetes-x": false, "kube": false,
	} {
		errs := validateRequest(&projectv1.ProjectRequest{ObjectMeta: metav1.ObjectMeta{Name: name}}, nil)
		if (len(errs) == 0) != ok {
			t.Errorf("%q: %v", name, errs)
		}
	}
}

func TestValidateUpdateKeepsImmutableMetadata(t *testing.T) {
	old := &projectv1.Project{ObjectMeta: metav1.ObjectMeta{Name: "shop", ResourceVersion: "1", UID: "u", Annotations: map[string]string{
		"openshift.io/sa.scc.uid-range": "1/1", displayNameAnnotation: "a",
	}}}
	for key, ok := range map[string]bool{
		displayNameAnnotation: true, descriptionAnnotation: true, "openshift.io/sa.scc.uid-range": false, "openshift.io/node-selector": false,
		"openshift.io/requester": false,
	} {
		changed := old.DeepCopy()
		changed.Annotations[key] = "b=c"
		errs := strategy{}.ValidateUpdate(t.Context(), changed, old)
		if (len(errs) == 0) != ok {
			t.Errorf("%s: %v", key, errs)
		}
	}
	removed := old.DeepCopy()
	delete(removed.Annotations, "openshift.io/sa.scc.uid-range")
	labeled := old.DeepCopy()
	labeled.Labels = map[string]string{"a": "b"}
	for _, changed := range []*projectv1.Project{removed, labeled} {
		if len(strategy{}.ValidateUpdate(t.Context(), changed, old)) == 0 {
			t.Errorf("%v is accepted", changed.ObjectMeta)
		}
	}
}
