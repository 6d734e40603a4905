package project

import (
	"strings"
	"testing"

	projectv1 "github.com/openshift/api/project/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
)

func TestNamesOfTopLevelDomainsAreRejected(t *testing.T) {
	for _, tt := range []struct {
		config, names string
		allowed       bool
	}{
		{"", "com io de ck xn--p1ai corp lan arpa", false},
		{"", "web my-shop com-1 github s3 test dev ci shop", true},
		{"allowedTopLevelDomains: []", "com dev ci shop", false},
		{"allowedTopLevelDomains: [io]", "io web", true},
	} {
		plugin, err := newNameCheck(strings.NewReader(tt.config))
		if err != nil {
			t.Fatal(err)
		}
		for name := range strings.FieldsSeq(tt.names) {
			request := &projectv1.ProjectRequest{ObjectMeta: metav1.ObjectMeta{Name: name}}
			attributes := admission.NewAttributesRecord(request, nil, schema.GroupVersionKind{}, "", name,
				projectv1.GroupVersion.WithResource("projectrequests"), "", admission.Create, nil, false, &user.DefaultInfo{Name: "alice"})
			if err := plugin.Validate(t.Context(), attributes, nil); (err == nil) != tt.allowed {
				t.Errorf("%q: request for project %s: got error %v", tt.config, name, err)
			}
		}
	}
}

func TestCommonNamesAreTopLevelDomains(t *testing.T) {
	for _, name := range commonNames() {
		if !isTopLevel(name) {
			t.Errorf("%s is not a top-level domain", name)
		}
	}
}
