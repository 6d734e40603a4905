// Package unenforced warns users who create or change objects that the cluster stores but does not
// enforce, if users might rely on these objects for protection.
package unenforced

import (
	"context"
	"fmt"
	"io"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/warning"

	"github.com/slipway-platform/slipway/apiserver"
)

// Name is the name of the admission plugin in the configuration.
const Name = "openshift.io/UnenforcedWarnings"

// Feature returns the feature that adds the admission plugin to the API server. The plugin warns
// about requests that create or change an object of one of the given resources. reason explains why
// the cluster does not enforce these objects.
func Feature(resources []schema.GroupVersionResource, reason string) apiserver.Feature {
	return apiserver.Feature{Admission: []apiserver.Admission{{
		Name: Name, New: func(io.Reader) (admission.Interface, error) { return newWarner(resources, reason), nil },
	}}}
}

type warner struct {
	*admission.Handler
	resources []schema.GroupVersionResource
	reason    string
}

var _ admission.ValidationInterface = &warner{}

func newWarner(resources []schema.GroupVersionResource, reason string) *warner {
	return &warner{admission.NewHandler(admission.Create, admission.Update), resources, reason}
}

// Validate adds the warning. It never rejects a request.
func (w *warner) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	resource := a.GetResource().GroupResource()
	isListed := func(r schema.GroupVersionResource) bool { return r.GroupResource() == resource }
	if a.GetSubresource() == "" && slices.ContainsFunc(w.resources, isListed) {
		warning.AddWarning(ctx, "", Text(a.GetKind().Kind, w.reason))
	}
	return nil
}

// Text returns the warning for objects of the given kind.
func Text(kind, reason string) string {
	return fmt.Sprintf("%s: this cluster stores objects of this kind but does not enforce them, because %s", kind, reason)
}
