package servicecatalog

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/slipway-platform/slipway/apigroup/servicecatalog/v1beta1"
)

// of reports whether a request changes one of the given resources of the API group.
func of(a admission.Attributes, resources ...string) bool {
	if a.GetResource().Group != v1beta1.GroupName || a.GetSubresource() != "" {
		return false
	}
	for _, resource := range resources {
		if a.GetResource().Resource == resource {
			return true
		}
	}
	return false
}

// defaultPlan is the admission plugin that sets the plan of an instance whose class has only one
// plan.
type defaultPlan struct {
	*admission.Handler
	catalog *catalog
}

var _ admission.MutationInterface = &defaultPlan{}

func newDefaultPlan(c *catalog) *defaultPlan {
	return &defaultPlan{admission.NewHandler(admission.Create, admission.Update), c}
}

// Admit sets the plan. If the instance's class does not exist yet or does not have exactly one
// plan, Admit returns an error.
func (d *defaultPlan) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	instance, ok := a.GetObject().(*v1beta1.ServiceInstance)
	if !ok || !of(a, "serviceinstances") || instance.DeletionTimestamp != nil {
		return nil
	}
	reference := &instance.Spec.PlanReference
	target := missingPlan(reference)
	if target == nil {
		return nil
	}
	class, err := d.catalog.class(ctx, instance.Namespace, reference)
	if err != nil {
		return err
	}
	if class == nil {
		return admission.NewForbidden(a, errors.New("the service class does not exist, so its default plan is unknown; "+
			"list the classes with: oc get clusterserviceclasses,serviceclasses"))
	}
	plans, err := d.catalog.plans(ctx, instance.Namespace, class)
	plans = slices.DeleteFunc(plans, func(p plan) bool { return p.removed })
	switch {
	case err != nil:
		return err
	case len(plans) == 0:
		return admission.NewForbidden(a, fmt.Errorf("no plans found at all for service class %q", class.externalName))
	case len(plans) > 1:
		return admission.NewForbidden(a, fmt.Errorf("class %q (external name %q) has more than one plan, so the instance must name its plan", class.name, class.externalName))
	}
	target(&plans[0])
	return nil
}

// missingPlan returns a function that sets the plan reference in the form (name, external name or
// external ID) that the class reference uses. It returns nil if the plan is already set or the
// class is not set.
func missingPlan(p *v1beta1.PlanReference) func(*plan) {
	switch {
	case p.ClusterServiceClassExternalName != "" && p.ClusterServicePlanExternalName == "":
		return func(only *plan) { p.ClusterServicePlanExternalName = only.externalName }
	case p.ClusterServiceClassExternalID != "" && p.ClusterServicePlanExternalID == "":
		return func(only *plan) { p.ClusterServicePlanExternalID = only.externalID }
	case p.ClusterServiceClassName != "" && p.ClusterServicePlanName == "":
		return func(only *plan) { p.ClusterServicePlanName = only.name }
	case p.ServiceClassExternalName != "" && p.ServicePlanExternalName == "":
		return func(only *plan) { p.ServicePlanExternalName = only.externalName }
	case p.ServiceClassExternalID != "" && p.ServicePlanExternalID == "":
		return func(only *plan) { p.ServicePlanExternalID = only.externalID }
	case p.ServiceClassName != "" && p.ServicePlanName == "":
		return func(only *plan) { p.ServicePlanName = only.name }
	}
	return nil
}

// planChange is the admission plugin that rejects plan changes if the instance's plan does not
// allow them. If the plan does not specify whether it allows changes, the class decides.
type planChange struct {
	*admission.Handler
	catalog *catalog
}

var _ admission.ValidationInterface = &planChange{}

func newPlanChange(c *catalog) *planChange {
	return &planChange{admission.NewHandler(admission.Update), c}
}

// Validate rejects a plan change that the old plan or its class does not allow.
func (p *planChange) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	instance, ok := a.GetObject().(*v1beta1.ServiceInstance)
	old, wasInstance := a.GetOldObject().(*v1beta1.ServiceInstance)
	if !ok || !wasInstance || !of(a, "serviceinstances") || instance.Spec.PlanReference == old.Spec.PlanReference {
		return nil
	}
	class, err := p.catalog.class(ctx, instance.Namespace, &instance.Spec.PlanReference)
	if err != nil || class == nil {
		return err
	}
	plans, err := p.catalog.plans(ctx, instance.Namespace, class)
	if err != nil {
		return err
	}
	updatable := class.planUpdatable
	at := slices.IndexFunc(plans, func(p plan) bool { return p.isReferenced(&old.Spec.PlanReference) })
	if at >= 0 && plans[at].updatable != nil {
		updatable = *plans[at].updatable
	}
	if updatable {
		return nil
	}
	return admission.NewForbidden(a, fmt.Errorf("The Service Class %v does not allow plan changes.", class.externalName)) //nolint:revive,staticcheck // the text of release 0.3
}

// brokerAuth is the admission plugin that rejects a broker if the requesting user is not allowed to
// read the broker's credentials secret.
type brokerAuth struct {
	*admission.Handler
	authorizer authorizer.Authorizer
}

var (
	_ admission.ValidationInterface     = &brokerAuth{}
	_ initializer.WantsAuthorizer       = &brokerAuth{}
	_ admission.InitializationValidator = &brokerAuth{}
)

func newBrokerAuth() *brokerAuth {
	return &brokerAuth{Handler: admission.NewHandler(admission.Create, admission.Update)}
}

// SetAuthorizer stores the API server's authorizer.
func (b *brokerAuth) SetAuthorizer(a authorizer.Authorizer) { b.authorizer = a }

// ValidateInitialization returns an error if no authorizer is set.
func (b *brokerAuth) ValidateInitialization() error {
	if b.authorizer == nil {
		return fmt.Errorf("initialize %s: no authorizer", BrokerAuthSarCheck)
	}
	return nil
}

// Validate checks that the user is allowed to get the secrets that the broker references.
func (b *brokerAuth) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if !of(a, "clusterservicebrokers", "servicebrokers") {
		return nil
	}
	for _, secret := range secretsOf(a) {
		decision, reason, err := b.authorizer.Authorize(ctx, authorizer.AttributesRecord{
			User: a.GetUserInfo(), Verb: "get", APIVersion: "v1", Resource: "secrets",
			Namespace: secret.Namespace, Name: secret.Name, ResourceRequest: true,
		})
		if decision == authorizer.DecisionAllow {
			continue
		}
		if err != nil {
			return admission.NewForbidden(a, fmt.Errorf("check access to the broker's secret: %w", err))
		}
		return admission.NewForbidden(a, fmt.Errorf("broker forbidden access to auth secret (%s): user %q may not get secret %s/%s",
			reason, a.GetUserInfo().GetName(), secret.Namespace, secret.Name))
	}
	return nil
}

// secretsOf returns references to the secrets that a broker uses.
func secretsOf(a admission.Attributes) (secrets []v1beta1.ObjectReference) {
	switch broker := a.GetObject().(type) {
	case *v1beta1.ClusterServiceBroker:
		if auth := broker.Spec.AuthInfo; auth != nil {
			for _, config := range []*v1beta1.ClusterAuthConfig{auth.Basic, auth.Bearer} {
				if config != nil && config.SecretRef != nil {
					secrets = append(secrets, *config.SecretRef)
				}
			}
		}
	case *v1beta1.ServiceBroker:
		if auth := broker.Spec.AuthInfo; auth != nil {
			for _, config := range []*v1beta1.AuthConfig{auth.Basic, auth.Bearer} {
				if config != nil && config.SecretRef != nil {
					secrets = append(secrets, v1beta1.ObjectReference{Namespace: a.GetNamespace(), Name: config.SecretRef.Name})
				}
			}
		}
	}
	return secrets
}

func resource(name string) schema.GroupResource {
	return schema.GroupResource{Group: v1beta1.GroupName, Resource: name}
}
