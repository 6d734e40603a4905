package kube

import (
	"context"
	"fmt"
	"sync"

	apiextensionsscheme "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/scheme"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/restmapper"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kubernetes/pkg/controller/validatingadmissionpolicystatus"
	"k8s.io/kubernetes/pkg/generated/openapi"

	"github.com/slipway-platform/slipway/controller"
)

// PolicyStatus is the component that type-checks the CEL expressions of
// ValidatingAdmissionPolicies, and writes warnings to the policies' status. It runs upstream's
// controller. In the controller manager, that controller keeps 7 MiB of OpenAPI definitions in
// memory. PolicyStatus saves this memory, because it creates the definitions only for the first
// policy.
type PolicyStatus struct {
	// Deps provides the shared clients and caches.
	Deps *controller.Deps
}

// Name returns the component's name.
func (*PolicyStatus) Name() string { return "policy-status" }

// Run checks policies until ctx is done.
func (p *PolicyStatus) Run(ctx context.Context, ready func()) error {
	client := p.Deps.Kube
	checker := &validating.TypeChecker{
		SchemaResolver: newSchemaResolver(client.Discovery()),
		RestMapper:     restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery())),
	}
	policies, err := validatingadmissionpolicystatus.NewController(p.Deps.Informers.Admissionregistration().V1().ValidatingAdmissionPolicies(),
		client.AdmissionregistrationV1().ValidatingAdmissionPolicies(), checker)
	if err != nil {
		return fmt.Errorf("set up policy status: %w", err)
	}
	p.Deps.Start()
	ready()
	policies.Run(ctx, 1)
	return nil
}

// schemaResolver creates upstream's resolver on first use.
type schemaResolver struct {
	create func() resolver.SchemaResolver
}

func newSchemaResolver(client discovery.DiscoveryInterface) schemaResolver {
	return schemaResolver{sync.OnceValue(func() resolver.SchemaResolver {
		return resolver.NewDefinitionsSchemaResolver(openapi.GetOpenAPIDefinitions, clientscheme.Scheme, apiextensionsscheme.Scheme).
			Combine(&resolver.ClientDiscoveryResolver{Discovery: client})
	})}
}

// ResolveSchema implements resolver.SchemaResolver.
func (r schemaResolver) ResolveSchema(kind schema.GroupVersionKind) (*spec.Schema, error) {
	return r.create().ResolveSchema(kind)
}
