package apiserver

import (
	"testing"

	routev1 "github.com/openshift/api/route/v1"
	"k8s.io/apiserver/pkg/registry/rest"
)

func TestUnstoredResourceHasScopeAndName(t *testing.T) {
	var resource interface {
		rest.Storage
		rest.Scoper
		rest.SingularNameProvider
	} = Unstored[*routev1.Route]{Singular: "route", Namespaced: true}
	first, ok := resource.New().(*routev1.Route)
	if !ok || first == resource.New() {
		t.Errorf("New returns %T, want a new route each time", resource.New())
	}
	if !resource.NamespaceScoped() || resource.GetSingularName() != "route" {
		t.Errorf("namespaced %t, singular %q", resource.NamespaceScoped(), resource.GetSingularName())
	}
}
