package template

import (
	"context"

	templatev1 "github.com/openshift/api/template/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/slipway-platform/slipway/apigroup/template/process"
	"github.com/slipway-platform/slipway/apiserver"
)

// processed serves requests to process a template.
type processed struct {
	apiserver.Unstored[*templatev1.Template]
}

var (
	_ rest.Creater              = &processed{}
	_ rest.Scoper               = &processed{}
	_ rest.SingularNameProvider = &processed{}

	_ rest.GroupVersionKindProvider = &processed{}
)

// GroupVersionKind distinguishes the resource from templates, which have the same wire type.
func (*processed) GroupVersionKind(gv schema.GroupVersion) schema.GroupVersionKind {
	return gv.WithKind(processedKind)
}

// Create returns the processed template. Nothing is stored.
func (*processed) Create(ctx context.Context, object runtime.Object, validate rest.ValidateObjectFunc,
	_ *metav1.CreateOptions) (runtime.Object, error) {
	template, ok := object.(*templatev1.Template)
	if !ok {
		return nil, apierrors.NewBadRequest("not a template")
	}
	kind := templatev1.GroupVersion.WithKind("Template").GroupKind()
	if errs := validateTemplate(ctx, template, nil); len(errs) > 0 {
		return nil, apierrors.NewInvalid(kind, template.Name, errs)
	}
	if validate != nil {
		if err := validate(ctx, object.DeepCopyObject()); err != nil {
			return nil, err
		}
	}
	if errs := process.Template(template); len(errs) > 0 {
		return nil, apierrors.NewInvalid(kind, template.Name, errs)
	}
	return template, nil
}
