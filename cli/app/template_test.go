package app

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	templatev1 "github.com/openshift/api/template/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/cli/app/newapp"
)

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	return object
}

func TestFlagsChangeObjectsOfTemplate(t *testing.T) {
	o := &newApp{request: newapp.Request{
		Environment:      []corev1.EnvVar{{Name: "A", Value: "new"}, {Name: "B", Value: "2"}},
		BuildEnvironment: []corev1.EnvVar{{Name: "C", Value: "3"}},
		Options:          newapp.BuildOptions{SourceSecret: "clone"},
	}}
	for before, after := range map[string]string{
		"{kind: DeploymentConfig, spec: {template: {spec: {containers: [{name: web, env: [{name: A, value: old}]}]}}}}": "" +
			"{kind: DeploymentConfig, spec: {template: {spec: {containers: [{name: web, env: [{name: A, value: new}, {name: B, value: '2'}]}]}}}}",
		"{kind: BuildConfig, spec: {strategy: {sourceStrategy: {}}}}": "" +
			"{kind: BuildConfig, spec: {source: {sourceSecret: {name: clone}}, strategy: {sourceStrategy: {env: [{name: C, value: '3'}]}}}}",
		"{kind: Service, spec: {}}": "{kind: Service, spec: {}}",
	} {
		got := parse(t, before)
		if err := o.configure(got); err != nil {
			t.Errorf("%s: %v", before, err)
		}
		if diff := cmp.Diff(parse(t, after).Object, got.Object); diff != "" {
			t.Errorf("%s:\n%s", before, diff)
		}
	}
}

func TestObjectsOfTemplateGetAppLabel(t *testing.T) {
	template := func(labels map[string]string, objects ...string) *templatev1.Template {
		result := &templatev1.Template{ObjectLabels: labels}
		result.Name = "shop"
		for _, text := range objects {
			result.Objects = append(result.Objects, runtime.RawExtension{Raw: []byte(text)})
		}
		return result
	}
	const service = `{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}}`
	const labeled = `{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "labels": {"app": "own"}}}`
	for name, tt := range map[string]struct {
		template *templatev1.Template
		request  newapp.Request
		want     string
	}{
		"name of the template":  {template(nil, service), newapp.Request{}, "shop"},
		"name of the flag":      {template(nil, service), newapp.Request{Name: "store"}, "store"},
		"own label":             {template(nil, service, labeled), newapp.Request{}, ""},
		"label of the template": {template(map[string]string{"app": "own"}, service), newapp.Request{}, "own"},
		"labels of the flag":    {template(nil, service), newapp.Request{Labels: map[string]string{"a": "b"}}, ""},
	} {
		if err := (&newApp{request: tt.request}).label(tt.template); err != nil || tt.template.ObjectLabels["app"] != tt.want {
			t.Errorf("%s: label %q, %v, want %q", name, tt.template.ObjectLabels["app"], err, tt.want)
		}
	}
}

func TestSecretsNeedValidNames(t *testing.T) {
	o := &newApp{request: newapp.Request{Options: newapp.BuildOptions{SourceSecret: "InvalidSecretName"}}}
	if err := o.checkSecrets(); err == nil || err.Error() != `source secret name "InvalidSecretName" is invalid` {
		t.Errorf("an invalid name: %v", err)
	}
}

func TestBuildArgumentsNeedDockerBuild(t *testing.T) {
	options := newapp.BuildOptions{Arguments: []corev1.EnvVar{{Name: "a", Value: "b"}}}
	source := parse(t, "{kind: BuildConfig, spec: {strategy: {type: Source}}}")
	docker := parse(t, "{kind: BuildConfig, spec: {strategy: {type: Docker}}}")
	if err := checkArguments(options, []*unstructured.Unstructured{source}); err == nil {
		t.Error("a source build has build arguments")
	}
	if err := checkArguments(options, []*unstructured.Unstructured{source, docker}); err != nil {
		t.Error(err)
	}
}
