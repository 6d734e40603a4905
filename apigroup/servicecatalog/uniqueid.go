package servicecatalog

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apiserver/pkg/admission"

	"github.com/slipway-platform/slipway/apigroup/servicecatalog/v1beta1"
)

// uniqueID rejects an instance with the external ID of another instance, in any project. For
// brokers, both would be the same instance: a viewer of a project sees its IDs, and could bind
// and delete its instances through an instance of their own project.
type uniqueID struct {
	*admission.Handler
	catalog *catalog
}

var _ admission.ValidationInterface = &uniqueID{}

func newUniqueID(c *catalog) *uniqueID { return &uniqueID{admission.NewHandler(admission.Create), c} }

// Validate rejects the instance.
func (u *uniqueID) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	instance, ok := a.GetObject().(*v1beta1.ServiceInstance)
	if !ok || !of(a, "serviceinstances") {
		return nil
	}
	list, err := u.catalog.list(ctx, "serviceinstances", "", fields.OneTermEqualSelector("spec.externalID", instance.Spec.ExternalID))
	if err != nil {
		return err
	}
	for _, other := range list.(*v1beta1.ServiceInstanceList).Items {
		if other.Namespace != instance.Namespace || other.Name != instance.Name {
			return admission.NewForbidden(a, errors.New("another instance has this spec.externalID; remove the field, and the catalog creates an ID"))
		}
	}
	return nil
}
