// Package servicecatalog serves the API group servicecatalog.k8s.io: Open Service Broker API
// brokers, the classes and plans that they offer, and users' instances and bindings.
//
// Source: OpenShift Container Platform 3.9 Architecture, chapter 6. The fields, defaults and checks
// are the same as in service catalog release 0.3.
package servicecatalog

import (
	"context"
	"io"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/slipway-platform/slipway/apigroup/servicecatalog/v1beta1"
	"github.com/slipway-platform/slipway/apiserver"
)

// Admission plugin names.
const (
	DefaultServicePlan         = "DefaultServicePlan"
	ServicePlanChangeValidator = "ServicePlanChangeValidator"
	BrokerAuthSarCheck         = "BrokerAuthSarCheck"
	UniqueExternalID           = "UniqueExternalID"
	ServiceBrokerDeletionOrder = "ServiceBrokerDeletionOrder"
)

// Feature returns the servicecatalog.k8s.io API group and its admission plugins so that they can be
// registered with the API server.
func Feature() apiserver.Feature {
	catalog := &catalog{}
	return apiserver.Feature{
		// The plugins are created before the stores exist. They use the stores only when they serve
		// requests.
		Hooks: func(deps apiserver.Deps) (apiserver.Hooks, error) {
			catalog.stores = deps.Stores
			return apiserver.Hooks{}, nil
		},
		Admission: []apiserver.Admission{
			{Name: DefaultServicePlan, New: func(io.Reader) (admission.Interface, error) { return newDefaultPlan(catalog), nil }},
			{Name: ServicePlanChangeValidator, New: func(io.Reader) (admission.Interface, error) { return newPlanChange(catalog), nil }},
			{Name: BrokerAuthSarCheck, New: func(io.Reader) (admission.Interface, error) { return newBrokerAuth(), nil }},
			{Name: UniqueExternalID, New: func(io.Reader) (admission.Interface, error) { return newUniqueID(catalog), nil }},
			{Name: ServiceBrokerDeletionOrder, New: func(io.Reader) (admission.Interface, error) { return newDeletionOrder(catalog.cached), nil }},
		},
		Groups: []apiserver.Group{{
			GroupVersion: v1beta1.GroupVersion(),
			Install:      v1beta1.Install,
			Definitions:  v1beta1.GetOpenAPIDefinitions,
			Resources: []apiserver.Served{
				clusterBrokers(), brokers(), clusterClasses(), classes(), clusterPlans(), plans(), instances(), bindings(),
			},
		}},
	}
}

// addFinalizer adds the catalog's finalizer, which keeps the object until the catalog controller
// has cleaned up.
func addFinalizer(object metav1.Object) {
	if !slices.Contains(object.GetFinalizers(), v1beta1.Finalizer) {
		object.SetFinalizers(append(object.GetFinalizers(), v1beta1.Finalizer))
	}
}

// requester returns the user who sent a request.
func requester(ctx context.Context) *authenticationv1.UserInfo {
	user, ok := request.UserFrom(ctx)
	if !ok {
		return nil
	}
	info := &authenticationv1.UserInfo{Username: user.GetName(), UID: user.GetUID(), Groups: slices.Clone(user.GetGroups())}
	for key, values := range user.GetExtra() {
		if info.Extra == nil {
			info.Extra = map[string]authenticationv1.ExtraValue{}
		}
		info.Extra[key] = slices.Clone(values)
	}
	return info
}

// immutable returns an error if a field changes.
func immutable(value, old any, at *field.Path) field.ErrorList {
	if apiequality.Semantic.DeepEqual(value, old) {
		return nil
	}
	return field.ErrorList{field.Invalid(at, value, "field is immutable")}
}
