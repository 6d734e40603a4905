package servicecatalog

import (
	"bytes"
	"context"
	"encoding/json"

	authenticationv1 "k8s.io/api/authentication/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/slipway-platform/slipway/apigroup/servicecatalog/v1beta1"
	"github.com/slipway-platform/slipway/apiserver"
)

func instances() apiserver.Served {
	type instance = *v1beta1.ServiceInstance
	return labeled(apiserver.Resource[instance]{
		Plural: "serviceinstances", Namespaced: true, Status: true,
		Default: func(i instance) {
			if i.Status.Conditions == nil {
				i.Status.Conditions = []metav1.Condition{}
			}
		},
		Prepare: prepareInstance, Validate: validateInstance, Warn: warnInstance,
		Adjust: recordDeleter(func(i instance) **authenticationv1.UserInfo { return &i.Spec.UserInfo }),
		Subresources: func(_ apiserver.Deps, store *registry.Store) (map[string]rest.Storage, error) {
			return map[string]rest.Storage{"reference": newReference(store)}, nil
		},
		Fields: map[string]func(instance) string{
			"spec.externalID":                  func(i instance) string { return i.Spec.ExternalID },
			"spec.clusterServiceClassRef.name": func(i instance) string { return clusterName(i.Spec.ClusterServiceClassRef) },
			"spec.clusterServicePlanRef.name":  func(i instance) string { return clusterName(i.Spec.ClusterServicePlanRef) },
			"spec.serviceClassRef.name":        func(i instance) string { return localName(i.Spec.ServiceClassRef) },
			"spec.servicePlanRef.name":         func(i instance) string { return localName(i.Spec.ServicePlanRef) },
		},
		Columns: []apiserver.Column[instance]{
			{Name: "Class", Description: "Class of the instance", Value: func(i instance) any { return i.Status.UserSpecifiedClassName }},
			{Name: "Plan", Description: "Plan of the instance", Value: func(i instance) any { return i.Status.UserSpecifiedPlanName }},
			{Name: "Status", Description: "State of the instance", Value: func(i instance) any { return i.Status.LastConditionState }},
			apiserver.Age[instance](),
		},
	})
}

func clusterName(reference *v1beta1.ClusterObjectReference) string {
	if reference == nil {
		return ""
	}
	return reference.Name
}

func localName(reference *v1beta1.LocalObjectReference) string {
	if reference == nil {
		return ""
	}
	return reference.Name
}

// prepareInstance sets the fields that clients cannot set: the user info and the references. Only
// the reference subresource can change the references.
func prepareInstance(ctx context.Context, instance, old *v1beta1.ServiceInstance) {
	spec := &instance.Spec
	if old == nil {
		addFinalizer(instance)
		spec.ClusterServiceClassRef, spec.ClusterServicePlanRef, spec.ServiceClassRef, spec.ServicePlanRef = nil, nil, nil, nil
		if spec.ExternalID == "" {
			spec.ExternalID = string(instance.UID) // the server has just created the UID
		}
		spec.UserInfo = requester(ctx)
		instance.Status.ProvisionStatus = v1beta1.NotProvisioned
		instance.Status.DeprovisionStatus = v1beta1.DeletionNotRequired
		return
	}
	previous := old.Spec.DeepCopy()
	if spec.ExternalID == "" {
		spec.ExternalID = previous.ExternalID
	}
	spec.ClusterServiceClassRef, spec.ServiceClassRef = previous.ClusterServiceClassRef, previous.ServiceClassRef
	spec.ClusterServicePlanRef, spec.ServicePlanRef = previous.ClusterServicePlanRef, previous.ServicePlanRef
	if spec.PlanReference != previous.PlanReference {
		spec.ClusterServicePlanRef, spec.ServicePlanRef = nil, nil
	}
	spec.UserInfo = previous.UserInfo
	if !apiequality.Semantic.DeepEqual(spec, previous) {
		spec.UserInfo = requester(ctx)
	}
}

func validateInstance(_ context.Context, instance, old *v1beta1.ServiceInstance) (errs field.ErrorList) {
	at := field.NewPath("spec")
	errs = append(errs, validatePlanReference(&instance.Spec.PlanReference, at)...)
	errs = append(errs, validateParameters(instance.Spec.Parameters, instance.Spec.ParametersFrom, at)...)
	errs = append(errs, validateExternalID(instance.Spec.ExternalID, at.Child("externalID"))...)
	if instance.Spec.UpdateRequests < 0 {
		errs = append(errs, field.Invalid(at.Child("updateRequests"), instance.Spec.UpdateRequests, "must not be negative"))
	}
	if old == nil {
		return errs
	}
	if instance.Spec.UpdateRequests < old.Spec.UpdateRequests {
		errs = append(errs, field.Invalid(at.Child("updateRequests"), instance.Spec.UpdateRequests, "must not decrease"))
	}
	errs = append(errs, immutable(instance.Spec.ExternalID, old.Spec.ExternalID, at.Child("externalID"))...)
	errs = append(errs, immutable(classOf(&instance.Spec.PlanReference), classOf(&old.Spec.PlanReference), at.Child("class"))...)
	if old.Status.CurrentOperation != "" && old.DeletionTimestamp == nil && !apiequality.Semantic.DeepEqual(instance.Spec, old.Spec) {
		errs = append(errs, field.Forbidden(at, "Another update for this service instance is in progress"))
	}
	return errs
}

// classOf returns a plan reference that contains only the class fields of p.
func classOf(p *v1beta1.PlanReference) v1beta1.PlanReference {
	return v1beta1.PlanReference{
		ClusterServiceClassExternalName: p.ClusterServiceClassExternalName, ClusterServiceClassExternalID: p.ClusterServiceClassExternalID,
		ClusterServiceClassName: p.ClusterServiceClassName, ServiceClassExternalName: p.ServiceClassExternalName,
		ServiceClassExternalID: p.ServiceClassExternalID, ServiceClassName: p.ServiceClassName,
	}
}

// way contains the names and values of the class and plan fields in one of the six forms of a plan
// reference.
type way struct{ classKey, class, planKey, plan string }

func ways(p *v1beta1.PlanReference) []way {
	return []way{
		{"clusterServiceClassExternalName", p.ClusterServiceClassExternalName, "clusterServicePlanExternalName", p.ClusterServicePlanExternalName},
		{"clusterServiceClassExternalID", p.ClusterServiceClassExternalID, "clusterServicePlanExternalID", p.ClusterServicePlanExternalID},
		{"clusterServiceClassName", p.ClusterServiceClassName, "clusterServicePlanName", p.ClusterServicePlanName},
		{"serviceClassExternalName", p.ServiceClassExternalName, "servicePlanExternalName", p.ServicePlanExternalName},
		{"serviceClassExternalID", p.ServiceClassExternalID, "servicePlanExternalID", p.ServicePlanExternalID},
		{"serviceClassName", p.ServiceClassName, "servicePlanName", p.ServicePlanName},
	}
}

func validatePlanReference(p *v1beta1.PlanReference, at *field.Path) (errs field.ErrorList) {
	var first *way
	for _, way := range ways(p) {
		switch {
		case way.class == "" && way.plan != "":
			errs = append(errs, field.Required(at.Child(way.classKey), way.planKey+" needs it"))
		case way.class == "":
		case first != nil:
			errs = append(errs, field.Forbidden(at.Child(way.classKey), "the class is already named by "+first.classKey))
		case way.plan == "":
			errs = append(errs, field.Required(at.Child(way.planKey), "name the plan"))
			first = &way
		default:
			first = &way
		}
	}
	if first == nil && len(errs) == 0 {
		errs = append(errs, field.Required(at.Child("clusterServiceClassExternalName"), "name the class and the plan"))
	}
	return errs
}

// maxSources is the maximum number of parameter secrets, and the maximum number of transforms for a
// binding's secret. The numbers are limited because the catalog reads a secret for each of them.
const maxSources = 100

func validateParameters(parameters *runtime.RawExtension, from []v1beta1.ParametersFromSource, at *field.Path) (errs field.ErrorList) {
	if parameters != nil && len(parameters.Raw) > 0 && !bytes.Equal(parameters.Raw, []byte("null")) {
		var values map[string]any
		if json.Unmarshal(parameters.Raw, &values) != nil {
			errs = append(errs, field.Invalid(at.Child("parameters"), "", "must be an object with the parameters"))
		}
	}
	if len(from) > maxSources {
		errs = append(errs, field.TooMany(at.Child("parametersFrom"), len(from), maxSources))
	}
	for i, source := range from {
		in := at.Child("parametersFrom").Index(i).Child("secretKeyRef")
		if source.SecretKeyRef == nil {
			errs = append(errs, field.Required(in, "name the secret and its key"))
			continue
		}
		errs = append(errs, validateName(source.SecretKeyRef.Name, in.Child("name"))...)
		if source.SecretKeyRef.Key == "" {
			errs = append(errs, field.Required(in.Child("key"), "name the key of the secret"))
		}
	}
	return errs
}

// validateExternalID checks an ID, which is a path segment in broker URLs.
func validateExternalID(id string, at *field.Path) field.ErrorList {
	if id == "." || id == ".." {
		return field.ErrorList{field.Invalid(at, id, "must not be a relative path")}
	}
	if len(id) > maxExternal {
		return field.ErrorList{field.TooLong(at, "", maxExternal)}
	}
	return nil
}

// warnInstance returns a warning about the effect of the annotation that abandons an instance.
func warnInstance(instance, old *v1beta1.ServiceInstance) []string {
	return warnAbandon(instance, old != nil && old.Annotations[v1beta1.AbandonAnnotation] == "true")
}

func warnAbandon(object metav1.Object, before bool) []string {
	if before || object.GetAnnotations()[v1beta1.AbandonAnnotation] != "true" {
		return nil
	}
	return []string{v1beta1.AbandonAnnotation + ": the catalog will delete this object without its broker; " +
		"its resources can continue to exist at the broker and to cause costs"}
}
