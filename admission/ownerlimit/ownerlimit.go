// Package ownerlimit limits the number of an object's owner references.
//
// For each owner that does not exist, the garbage collector keeps an entry in memory and sends two
// requests, one after the other. A few objects with thousands of references to missing owners would
// stop garbage collection in all projects for minutes.
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

// maxOwners is the maximum number of owner references. Most objects have one.
const maxOwners = 64

// Feature returns the plugin so that it can be registered with the API server.
func Feature() apiserver.Feature {
	return apiserver.Feature{Admission: []apiserver.Admission{{
		Name: Name, New: func(io.Reader) (admission.Interface, error) {
			return plugin{admission.NewHandler(admission.Create, admission.Update)}, nil
		},
	}}}
}

// plugin is the admission plugin.
type plugin struct{ *admission.Handler }

var _ admission.ValidationInterface = plugin{}

// Validate rejects an object with too many owner references. An existing object that exceeds the
// limit can change, but an update cannot add owner references.
func (plugin) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	number := owners(a.GetObject())
	if number <= maxOwners || number <= owners(a.GetOldObject()) {
		return nil
	}
	return admission.NewForbidden(a, fmt.Errorf("metadata.ownerReferences has %d entries, the limit is %d: name fewer owners", number, maxOwners))
}

func owners(object runtime.Object) int {
	if object == nil {
		return 0
	}
	accessor, err := meta.Accessor(object)
	if err != nil {
		return 0 // the object is not countable, such as the options of a connection
	}
	return len(accessor.GetOwnerReferences())
}
