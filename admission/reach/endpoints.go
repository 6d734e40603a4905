package reach

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	rules "github.com/slipway-platform/slipway/internal/endpoints"
)

// endpoints is the RestrictedEndpointsAdmission plugin.
type endpoints struct {
	plugin
	authorizer authorizer.Authorizer
}

var _ admission.ValidationInterface = &endpoints{}

func newEndpoints(reserved *reserved) *endpoints { return &endpoints{plugin: newPlugin(reserved)} }

// SetAuthorizer stores the API server's authorizer.
func (e *endpoints) SetAuthorizer(a authorizer.Authorizer) { e.authorizer = a }

// ValidateInitialization returns an error if the informers or the authorizer are missing.
func (e *endpoints) ValidateInitialization() error {
	if e.authorizer == nil {
		return fmt.Errorf("initialize %s: no authorizer", RestrictedEndpoints)
	}
	return e.plugin.ValidateInitialization()
}

// Validate rejects platform addresses from users who are not allowed to create
// endpoints/restricted. It accepts an update that changes neither the addresses and ports nor the
// manager.
func (e *endpoints) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetSubresource() != "" {
		return nil
	}
	if err := e.checkManager(ctx, a); err != nil {
		return err
	}
	texts, changed := targets(a.GetObject(), a.GetOldObject())
	if !changed || len(texts) == 0 || e.mayReachPlatform(ctx, a) {
		return nil
	}
	if err := e.ready(a); err != nil {
		return err
	}
	for _, text := range texts {
		address, ok := parse(text)
		if !ok {
			continue // the API server rejects an invalid address
		}
		if owner := e.reserved.owner(address); owner != "" {
			return admission.NewForbidden(a, fmt.Errorf("endpoint address %s is not allowed: it is in %s; "+
				"let the service select pods, or use an address outside the cluster", text, owner))
		}
	}
	return nil
}

// checkManager rejects an update that removes or changes the label that package
// controller/endpoints uses to find the object, or that assigns an EndpointSlice to another
// service. Otherwise, a user could keep the addresses of pods that have ended, although other
// users' pods can have these addresses.
func (e *endpoints) checkManager(ctx context.Context, a admission.Attributes) error {
	before, after := managerOf(a.GetOldObject()), managerOf(a.GetObject())
	managed := before.controller == rules.Controller || before.controller == rules.SliceController
	if !managed || before == after || e.mayReachPlatform(ctx, a) {
		return nil
	}
	return admission.NewForbidden(a, fmt.Errorf("the labels that name the object's controller and service (%q, %q) cannot be changed; "+
		"delete the object, and create another one", before.controller, before.service))
}

// manager identifies the controller that created an object and, for an EndpointSlice, the object's
// service.
type manager struct{ controller, service string }

func managerOf(object any) manager {
	switch current := object.(type) {
	case *corev1.Endpoints:
		return manager{current.Labels[rules.ManagedBy], current.Name}
	case *discoveryv1.EndpointSlice:
		return manager{current.Labels[discoveryv1.LabelManagedBy], current.Labels[discoveryv1.LabelServiceName]}
	}
	return manager{}
}

func (e *endpoints) mayReachPlatform(ctx context.Context, a admission.Attributes) bool {
	decision, _, err := e.authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User: a.GetUserInfo(), Verb: "create", Namespace: a.GetNamespace(), Resource: a.GetResource().Resource, Subresource: "restricted",
		APIGroup: a.GetResource().Group, Name: a.GetName(), ResourceRequest: true,
	})
	return err == nil && decision == authorizer.DecisionAllow
}

// targets returns the target addresses of an Endpoints or EndpointSlice object. changed reports
// whether the addresses or ports differ from the addresses or ports in old, the stored object. old
// is nil for a new object.
func targets(object, old any) (texts []string, changed bool) {
	switch current := object.(type) {
	case *corev1.Endpoints:
		for _, subset := range current.Subsets {
			for _, address := range slices.Concat(subset.Addresses, subset.NotReadyAddresses) {
				texts = append(texts, address.IP)
			}
		}
		previous, ok := old.(*corev1.Endpoints)
		return texts, !ok || !equality.Semantic.DeepEqual(current.Subsets, previous.Subsets)
	case *discoveryv1.EndpointSlice:
		for _, endpoint := range current.Endpoints {
			texts = append(texts, endpoint.Addresses...)
		}
		previous, ok := old.(*discoveryv1.EndpointSlice)
		return texts, !ok || !equality.Semantic.DeepEqual(current.Endpoints, previous.Endpoints) ||
			!equality.Semantic.DeepEqual(current.Ports, previous.Ports)
	}
	return nil, false
}
