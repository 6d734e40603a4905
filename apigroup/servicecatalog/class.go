package servicecatalog

import (
	"context"
	"strconv"

	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/slipway-platform/slipway/apigroup/servicecatalog/v1beta1"
	"github.com/slipway-platform/slipway/apiserver"
)

func clusterClasses() apiserver.Served {
	type class = *v1beta1.ClusterServiceClass
	return labeled(apiserver.Resource[class]{
		Plural: "clusterserviceclasses", Status: true,
		Validate: func(_ context.Context, c, old class) field.ErrorList {
			errs := validateName(c.Spec.ClusterServiceBrokerName, field.NewPath("spec", "clusterServiceBrokerName"))
			var previous *v1beta1.CommonServiceClassSpec
			if old != nil {
				previous = &old.Spec.CommonServiceClassSpec
			}
			return append(errs, validateClass(&c.Spec.CommonServiceClassSpec, previous)...)
		},
		Fields: map[string]func(class) string{
			"spec.externalID":               func(c class) string { return c.Spec.ExternalID },
			"spec.externalName":             func(c class) string { return c.Spec.ExternalName },
			"spec.clusterServiceBrokerName": func(c class) string { return c.Spec.ClusterServiceBrokerName },
		},
		Columns: []apiserver.Column[class]{
			{Name: "External-Name", Description: "Name in the broker's catalog", Value: func(c class) any { return c.Spec.ExternalName }},
			{Name: "Broker", Description: "Broker of the class", Value: func(c class) any { return c.Spec.ClusterServiceBrokerName }},
			apiserver.Age[class](),
		},
	})
}

func classes() apiserver.Served {
	type class = *v1beta1.ServiceClass
	return labeled(apiserver.Resource[class]{
		Plural: "serviceclasses", Namespaced: true, Status: true,
		Validate: func(_ context.Context, c, old class) field.ErrorList {
			errs := validateName(c.Spec.ServiceBrokerName, field.NewPath("spec", "serviceBrokerName"))
			var previous *v1beta1.CommonServiceClassSpec
			if old != nil {
				previous = &old.Spec.CommonServiceClassSpec
			}
			return append(errs, validateClass(&c.Spec.CommonServiceClassSpec, previous)...)
		},
		Fields: map[string]func(class) string{
			"spec.externalID":        func(c class) string { return c.Spec.ExternalID },
			"spec.externalName":      func(c class) string { return c.Spec.ExternalName },
			"spec.serviceBrokerName": func(c class) string { return c.Spec.ServiceBrokerName },
		},
		Columns: []apiserver.Column[class]{
			{Name: "External-Name", Description: "Name in the broker's catalog", Value: func(c class) any { return c.Spec.ExternalName }},
			{Name: "Broker", Description: "Broker of the class", Value: func(c class) any { return c.Spec.ServiceBrokerName }},
			apiserver.Age[class](),
		},
	})
}

func clusterPlans() apiserver.Served {
	type plan = *v1beta1.ClusterServicePlan
	return labeled(apiserver.Resource[plan]{
		Plural: "clusterserviceplans", Status: true,
		Validate: func(_ context.Context, p, old plan) field.ErrorList {
			at := field.NewPath("spec")
			errs := validateName(p.Spec.ClusterServiceBrokerName, at.Child("clusterServiceBrokerName"))
			errs = append(errs, validateName(p.Spec.ClusterServiceClassRef.Name, at.Child("clusterServiceClassRef", "name"))...)
			var previous *v1beta1.CommonServicePlanSpec
			if old != nil {
				previous = &old.Spec.CommonServicePlanSpec
				errs = append(errs, immutable(p.Spec.ClusterServiceClassRef, old.Spec.ClusterServiceClassRef, at.Child("clusterServiceClassRef"))...)
			}
			return append(errs, validatePlan(&p.Spec.CommonServicePlanSpec, previous)...)
		},
		Fields: map[string]func(plan) string{
			"spec.externalID":                  func(p plan) string { return p.Spec.ExternalID },
			"spec.externalName":                func(p plan) string { return p.Spec.ExternalName },
			"spec.free":                        func(p plan) string { return strconv.FormatBool(p.Spec.Free) },
			"spec.clusterServiceBrokerName":    func(p plan) string { return p.Spec.ClusterServiceBrokerName },
			"spec.clusterServiceClassRef.name": func(p plan) string { return p.Spec.ClusterServiceClassRef.Name },
		},
		Columns: []apiserver.Column[plan]{
			{Name: "External-Name", Description: "Name in the broker's catalog", Value: func(p plan) any { return p.Spec.ExternalName }},
			{Name: "Broker", Description: "Broker of the plan", Value: func(p plan) any { return p.Spec.ClusterServiceBrokerName }},
			{Name: "Class", Description: "Class of the plan", Value: func(p plan) any { return p.Spec.ClusterServiceClassRef.Name }},
			apiserver.Age[plan](),
		},
	})
}

func plans() apiserver.Served {
	type plan = *v1beta1.ServicePlan
	return labeled(apiserver.Resource[plan]{
		Plural: "serviceplans", Namespaced: true, Status: true,
		Validate: func(_ context.Context, p, old plan) field.ErrorList {
			at := field.NewPath("spec")
			errs := validateName(p.Spec.ServiceBrokerName, at.Child("serviceBrokerName"))
			errs = append(errs, validateName(p.Spec.ServiceClassRef.Name, at.Child("serviceClassRef", "name"))...)
			var previous *v1beta1.CommonServicePlanSpec
			if old != nil {
				previous = &old.Spec.CommonServicePlanSpec
				errs = append(errs, immutable(p.Spec.ServiceClassRef, old.Spec.ServiceClassRef, at.Child("serviceClassRef"))...)
			}
			return append(errs, validatePlan(&p.Spec.CommonServicePlanSpec, previous)...)
		},
		Fields: map[string]func(plan) string{
			"spec.externalID":           func(p plan) string { return p.Spec.ExternalID },
			"spec.externalName":         func(p plan) string { return p.Spec.ExternalName },
			"spec.free":                 func(p plan) string { return strconv.FormatBool(p.Spec.Free) },
			"spec.serviceBrokerName":    func(p plan) string { return p.Spec.ServiceBrokerName },
			"spec.serviceClassRef.name": func(p plan) string { return p.Spec.ServiceClassRef.Name },
		},
		Columns: []apiserver.Column[plan]{
			{Name: "External-Name", Description: "Name in the broker's catalog", Value: func(p plan) any { return p.Spec.ExternalName }},
			{Name: "Broker", Description: "Broker of the plan", Value: func(p plan) any { return p.Spec.ServiceBrokerName }},
			{Name: "Class", Description: "Class of the plan", Value: func(p plan) any { return p.Spec.ServiceClassRef.Name }},
			apiserver.Age[plan](),
		},
	})
}

func validateClass(spec, old *v1beta1.CommonServiceClassSpec) (errs field.ErrorList) {
	at := field.NewPath("spec")
	errs = append(errs, validateExternal(spec.ExternalName, spec.ExternalID, spec.Description, at)...)
	if old != nil {
		errs = append(errs, immutable(spec.ExternalID, old.ExternalID, at.Child("externalID"))...)
	}
	return errs
}

func validatePlan(spec, old *v1beta1.CommonServicePlanSpec) (errs field.ErrorList) {
	at := field.NewPath("spec")
	errs = append(errs, validateExternal(spec.ExternalName, spec.ExternalID, spec.Description, at)...)
	if old != nil {
		errs = append(errs, immutable(spec.ExternalID, old.ExternalID, at.Child("externalID"))...)
	}
	return errs
}

// maxExternal is the maximum length of names and IDs in a broker's catalog.
const maxExternal = 250

func validateExternal(name, id, description string, at *field.Path) (errs field.ErrorList) {
	for key, value := range map[string]string{"externalName": name, "externalID": id} {
		switch {
		case value == "":
			errs = append(errs, field.Required(at.Child(key), "the broker's catalog must contain it"))
		case len(value) > maxExternal:
			errs = append(errs, field.TooLong(at.Child(key), "", maxExternal))
		}
	}
	if description == "" {
		errs = append(errs, field.Required(at.Child("description"), "the broker's catalog must contain it"))
	}
	return errs
}

// validateName checks an object name.
func validateName(name string, at *field.Path) (errs field.ErrorList) {
	if name == "" {
		return field.ErrorList{field.Required(at, "name the object")}
	}
	for _, message := range validation.NameIsDNSSubdomain(name, false) {
		errs = append(errs, field.Invalid(at, name, message))
	}
	return errs
}
