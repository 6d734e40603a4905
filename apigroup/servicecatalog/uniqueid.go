package servicecatalog

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apiserver/pkg/admission"

	"github.com/slipway-platform/slipway/apigroup/servicecatalog/v1beta1"
)

// uniqueID is the admission plugin that rejects an instance with the same external ID as another
// instance in any project. A broker would treat both instances as the same instance. A user who can
// view a project can see its instance IDs. Without this check, that user could create an instance
// with that ID in another project, and then bind or delete the original instance.
type uniqueID struct {
	*admission.Handler
	catalog *catalog
}

var _ admission.ValidationInterface = &uniqueID{}

func newUniqueID(c *catalog) *uniqueID { return &uniqueID{admission.NewHandler(admission.Create), c} }

// Validate rejects an instance whose external ID is already in use. It does not search for an ID
// that prepareInstance has set, because a search can wait for up to 100 ms.
func (u *uniqueID) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	instance, ok := a.GetObject().(*v1beta1.ServiceInstance)
	if !ok || !of(a, "serviceinstances") || instance.Spec.ExternalID == string(instance.UID) {
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
