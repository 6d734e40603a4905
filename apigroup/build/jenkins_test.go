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
			_, err := jenkins.prepare(prepared)
			if (err == nil) != (tt.problem == "") || err != nil && !strings.Contains(err.Error(), tt.problem) {
				t.Errorf("error %v, want %q", err, tt.problem)
			}
			if err == nil && (prepared.Parameters[1].Value != "secret" || prepared.Parameters[1].Generate != "") {
				t.Errorf("the parameters are %+v", prepared.Parameters)
			}
		})
	}
}

func TestImagesOfJenkinsTemplate(t *testing.T) {
	template := &templatev1.Template{Objects: []runtime.RawExtension{
		{Raw: []byte(`{"kind": "Service", "metadata": {"name": "jenkins"}, "spec": {"selector": {"name": "jenkins"}}}`)},
		{Raw: []byte(`{"kind": "ImageStream", "metadata": {"name": "agent"}}`)},
		{Raw: []byte(`{"kind": "DeploymentConfig", "metadata": {"name": "jenkins"}, "spec": {"triggers": [{"type": "ConfigChange"},
			{"type": "ImageChange", "imageChangeParams": {"from": {"kind": "ImageStreamTag", "namespace": "openshift", "name": "jenkins:2"}}},
			{"type": "ImageChange", "imageChangeParams": {"from": {"kind": "ImageStreamTag", "name": "proxy:1"}}},
			{"type": "ImageChange", "imageChangeParams": {"from": {"kind": "ImageStreamTag", "name": "cache"}}},
			{"type": "ImageChange", "imageChangeParams": {"from": {"kind": "ImageStreamTag", "name": "agent:latest"}}}]}}`)},
	}}
	var names []string
	for _, tag := range imagesOf(template, "shop") {
		names = append(names, tag.String())
	}
	if got := strings.Join(names, " "); got != "openshift/jenkins:2 shop/proxy:1 shop/cache:latest" {
		t.Errorf("the template needs the images %q", got)
	}
}
