// Package unenforced warns users who create or change objects that the cluster stores and doesn't act upon, when someone
// could rely on them for protection.
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

// Name is the admission plugin as the configuration calls it.
const Name = "openshift.io/UnenforcedWarnings"

// Feature has the plugin. A request that creates or changes one of the resources gets a warning.
func Feature(resources []schema.GroupVersionResource) apiserver.Feature {
	return apiserver.Feature{Admission: []apiserver.Admission{{
		Name: Name, New: func(io.Reader) (admission.Interface, error) { return newWarner(resources), nil },
	}}}
}

// warner is the plugin.
type warner struct {
	*admission.Handler
	resources []schema.GroupVersionResource
}

var _ admission.ValidationInterface = &warner{}

func newWarner(resources []schema.GroupVersionResource) *warner {
	return &warner{admission.NewHandler(admission.Create, admission.Update), resources}
}

// Validate warns and refuses nothing.
func (w *warner) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	resource := a.GetResource().GroupResource()
	if a.GetSubresource() == "" && slices.ContainsFunc(w.resources, func(r schema.GroupVersionResource) bool { return r.GroupResource() == resource }) {
		warning.AddWarning(ctx, "", Text(a.GetKind().Kind))
	}
	return nil
}

// Text says that objects of a kind have no effect.
func Text(kind string) string {
	return fmt.Sprintf("%s: this cluster stores objects of this kind but does not enforce them yet; traffic is neither allowed nor refused by them", kind)
}
