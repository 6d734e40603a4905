package attack

import (
	"encoding/json"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// catalogPath returns the URL path of a service catalog resource in a project.
func catalogPath(project, resource string) string {
	return "/apis/servicecatalog.k8s.io/v1beta1/namespaces/" + project + "/" + resource
}

const order = `{apiVersion: servicecatalog.k8s.io/v1beta1, kind: ServiceInstance, metadata: {name: db},
	spec: {clusterServiceClassExternalName: none, clusterServicePlanExternalName: none, externalID: %q}}`

// A broker treats two instances with the same ID as one service, so a tenant must not choose
// another tenant's ID.
func TestTenantCannotTakeServiceOfAnother(t *testing.T) {
	s := tenants(t)
	var instance struct {
		Spec struct{ ExternalID string }
	}
	response := s.alice.May("POST", catalogPath(s.shop, "serviceinstances"), fmt.Sprintf(order, ""))
	if err := json.Unmarshal([]byte(response), &instance); err != nil || instance.Spec.ExternalID == "" {
		t.Fatalf("no ID (%v): %s", err, response)
	}
	s.mallory.MayNot("POST", catalogPath(s.evil, "serviceinstances"), fmt.Sprintf(order, instance.Spec.ExternalID), "another instance has this spec.externalID")
	s.mallory.Refused("POST", catalogPath(s.evil, "serviceinstances"), fmt.Sprintf(order, ".."), "relative path", apierrors.IsInvalid)
	s.mallory.May("POST", catalogPath(s.evil, "serviceinstances"), fmt.Sprintf(order, "own-"+instance.Spec.ExternalID))
}

// A JSONPath expression that repeats the values in a broker's response many times could use up the
// masters' memory.
func TestBindingCannotMultiplyCredentials(t *testing.T) {
	s := tenants(t)
	const binding = `{apiVersion: servicecatalog.k8s.io/v1beta1, kind: ServiceBinding, metadata: {name: db},
		spec: {instanceRef: {name: db}, secretTransforms: [{addKey: {key: a, jsonPathExpression: %q}}]}}`
	s.mallory.Refused("POST", catalogPath(s.evil, "servicebindings"), fmt.Sprintf(binding, "{..a..a..a}"), "descendants", apierrors.IsInvalid)
	s.mallory.May("POST", catalogPath(s.evil, "servicebindings"), fmt.Sprintf(binding, "{.host}"))
}
