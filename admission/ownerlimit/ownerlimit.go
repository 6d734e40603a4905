// Package ownerlimit limits the number of an object's owner references.
//
// For each owner that does not exist, the garbage collector keeps an entry in memory and sends two
// requests, one after the other. A few objects with thousands of references to missing owners could
// stall garbage collection in all projects for minutes.
package ownerlimit

import (
	"context"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"

	"github.com/slipway-platform/slipway/apiserver"
)

// Name is the name of the admission plugin in messages.
const Name = "slipway.io/OwnerLimit"

// maxOwners is the maximum number of owner references per object. It does not restrict typical
// objects, which have a single owner.
const maxOwners = 64

// Feature returns the feature that adds the admission plugin to the API server.
func Feature() apiserver.Feature {
	return apiserver.Feature{Admission: []apiserver.Admission{{
		Name: Name, New: func(io.Reader) (admission.Interface, error) {
			return plugin{admission.NewHandler(admission.Create, admission.Update)}, nil
		},
	}}}
}

type plugin struct{ *admission.Handler }

var _ admission.ValidationInterface = plugin{}

// Validate rejects an object with too many owner references. An object that already exceeds the
// limit can be updated, but an update cannot add owner references.
func (plugin) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	number := owners(a.GetObject())
	if number <= maxOwners || number <= owners(a.GetOldObject()) {
		return nil
	}
	return admission.NewForbidden(a, fmt.Errorf("metadata.ownerReferences has %d entries, but the limit is %d; remove some owners", number, maxOwners))
}

func owners(object runtime.Object) int {
	if object == nil {
		return 0
	}
	accessor, err := meta.Accessor(object)
	if err != nil {
		return 0 // the object has no metadata, for example the options of a connection
	}
	return len(accessor.GetOwnerReferences())
}
