package build

import (
	"strings"
	"testing"

	templatev1 "github.com/openshift/api/template/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestJenkinsTemplateIsChecked(t *testing.T) {
	template := &templatev1.Template{
		Parameters: []templatev1.Parameter{{Name: "NAME", Value: "other"}, {Name: "PASSWORD", Generate: "expression", From: "[a-z]{8}"}},
		Objects: []runtime.RawExtension{
			{Raw: []byte(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "jenkins"}}`)},
			{Raw: []byte(`{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "${NAME}"}}`)},
		},
	}
	for name, tt := range map[string]struct {
		parameters map[string]string
		problem    string
	}{
		"valid":             {map[string]string{"NAME": "jenkins", "PASSWORD": "secret"}, ""},
		"no service":        {nil, `contains no service "jenkins"`},
		"unknown parameter": {map[string]string{"COLOR": "red"}, `has no parameter "COLOR"`},
	} {
		t.Run(name, func(t *testing.T) {
			jenkins, prepared := &Jenkins{Service: "jenkins", Parameters: tt.parameters}, template.DeepCopy()
			err := jenkins.prepare(prepared)
			if (err == nil) != (tt.problem == "") || err != nil && !strings.Contains(err.Error(), tt.problem) {
				t.Errorf("error %v, want %q", err, tt.problem)
			}
			if err == nil && (prepared.Parameters[1].Value != "secret" || prepared.Parameters[1].Generate != "") {
				t.Errorf("the parameters are %+v", prepared.Parameters)
			}
		})
	}
}
