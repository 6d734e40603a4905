package template

import (
	"context"

	templatev1 "github.com/openshift/api/template/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/slipway-platform/slipway/apigroup/template/process"
)

// processed is the action that fills in a template's parameters.
type processed struct{}

var (
	_ rest.Creater              = &processed{}
	_ rest.Scoper               = &processed{}
	_ rest.SingularNameProvider = &processed{}

	_ rest.GroupVersionKindProvider = &processed{}
)

// New makes an empty template.
func (*processed) New() runtime.Object { return &templatev1.Template{} }

// Destroy has nothing to give back.
func (*processed) Destroy() {}

// NamespaceScoped says that a template is processed for a namespace.
func (*processed) NamespaceScoped() bool { return true }

// GetSingularName is the name of one.
func (*processed) GetSingularName() string { return "processedtemplate" }

// GroupVersionKind tells the resource from templates, whose wire type it shares.
func (*processed) GroupVersionKind(gv schema.GroupVersion) schema.GroupVersionKind {
	return gv.WithKind(processedKind)
}

// Create answers with the template whose parameters are filled in. Nothing is stored.
func (*processed) Create(ctx context.Context, object runtime.Object, validate rest.ValidateObjectFunc, _ *metav1.CreateOptions) (runtime.Object, error) {
	template, ok := object.(*templatev1.Template)
	if !ok {
		return nil, errors.NewBadRequest("not a template")
	}
	kind := templatev1.GroupVersion.WithKind("Template").GroupKind()
	if problems := validateTemplate(ctx, template, nil); len(problems) > 0 {
		return nil, errors.NewInvalid(kind, template.Name, problems)
	}
	if validate != nil {
		if err := validate(ctx, object.DeepCopyObject()); err != nil {
			return nil, err
		}
	}
	if problems := process.Template(template); len(problems) > 0 {
		return nil, errors.NewInvalid(kind, template.Name, problems)
	}
	return template, nil
}
