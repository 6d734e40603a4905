package kube

import (
	"context"
	"fmt"
	"reflect"

	authorizationv1 "github.com/openshift/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/plugin/pkg/admission/serviceaccount"

	"github.com/slipway-platform/slipway/apiserver"
)

// onWireTypes passes Kubernetes objects to Slipway's admission plugins as wire types (k8s.io/api),
// and writes the plugins' changes back. In the API server, objects have internal types, which only
// package kube and its subpackages import.
func onWireTypes(names []string) admission.Decorator {
	groups := map[string]bool{}
	for _, name := range names {
		groups[name] = true
	}
	return admission.DecoratorFunc(func(plugin admission.Interface, name string) admission.Interface {
		if !groups[name] {
			return plugin
		}
		return &wirePlugin{plugin}
	})
}

// reviewAnywhere exempts OpenShift's access reviews from upstream's NamespaceLifecycle plugin, as
// upstream exempts its own access reviews. A review in a namespace that does not exist must not
// reveal that the namespace does not exist.
func reviewAnywhere() admission.Decorator {
	return admission.DecoratorFunc(func(plugin admission.Interface, name string) admission.Interface {
		if name != lifecycle.PluginName {
			return plugin
		}
		return exceptReviews{plugin}
	})
}

// exceptReviews passes all requests except access reviews to a plugin.
type exceptReviews struct {
	admission.Interface
}

var _ admission.MutationInterface = exceptReviews{}

// Admit calls the plugin, except for access reviews.
func (e exceptReviews) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	mutator, ok := e.Interface.(admission.MutationInterface)
	if !ok || isAccessReview(a.GetResource().GroupResource()) {
		return nil
	}
	return mutator.Admit(ctx, a, o)
}

// isAccessReview reports whether a resource is one of OpenShift's namespaced access reviews.
func isAccessReview(resource schema.GroupResource) bool {
	if resource.Group != authorizationv1.GroupName {
		return false
	}
	switch resource.Resource {
	case "localsubjectaccessreviews", "localresourceaccessreviews", "selfsubjectrulesreviews", "subjectrulesreviews":
		return true
	}
	return false
}

// limitReferences enables the check in upstream's ServiceAccount plugin that OpenShift 3 configures
// with serviceAccountConfig.limitSecretReferences. Upstream has no flag for this check.
func limitReferences() admission.Decorator {
	return admission.DecoratorFunc(func(plugin admission.Interface, _ string) admission.Interface {
		if accounts, ok := plugin.(*serviceaccount.Plugin); ok {
			accounts.LimitSecretReferences = true
		}
		return plugin
	})
}

// withAuthorizer sets the plugins' authorizer to complete, which later includes the authorizers of
// all features. Upstream initializes plugins before these authorizers exist, and admission policies
// keep the first authorizer that they receive.
func withAuthorizer(complete *apiserver.Authorizer) admission.Decorator {
	return admission.DecoratorFunc(func(plugin admission.Interface, _ string) admission.Interface {
		if wants, ok := plugin.(initializer.WantsUnconditionalAuthorizer); ok {
			wants.SetUnconditionalAuthorizer(complete)
		}
		if wants, ok := plugin.(initializer.WantsAuthorizer); ok {
			wants.SetAuthorizer(complete)
		}
		return plugin
	})
}

// wirePlugin calls a plugin with wire types.
type wirePlugin struct {
	admission.Interface
}

var (
	_ admission.MutationInterface   = &wirePlugin{}
	_ admission.ValidationInterface = &wirePlugin{}
)

// Admit calls a mutating plugin.
func (p *wirePlugin) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	mutator, ok := p.Interface.(admission.MutationInterface)
	if !ok {
		return nil
	}
	view := &wireAttributes{Attributes: a}
	if err := mutator.Admit(ctx, view, o); err != nil {
		return err
	}
	return view.writeBack()
}

// Validate calls a validating plugin.
func (p *wirePlugin) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	validator, ok := p.Interface.(admission.ValidationInterface)
	if !ok {
		return nil
	}
	return validator.Validate(ctx, &wireAttributes{Attributes: a}, o)
}

// wireAttributes converts a request's objects on demand.
type wireAttributes struct {
	admission.Attributes
	object, old runtime.Object
}

// GetObject returns the object as its wire type.
func (a *wireAttributes) GetObject() runtime.Object {
	if a.object == nil {
		a.object = a.convert(a.Attributes.GetObject())
	}
	return a.object
}

// GetOldObject returns the stored object as its wire type.
func (a *wireAttributes) GetOldObject() runtime.Object {
	if a.old == nil {
		a.old = a.convert(a.Attributes.GetOldObject())
	}
	return a.old
}

// convert converts an internal type to the request's version. It returns other types unchanged.
func (a *wireAttributes) convert(object runtime.Object) runtime.Object {
	if object == nil || !internal(object) {
		return object
	}
	converted, err := legacyscheme.Scheme.ConvertToVersion(object, a.GetKind().GroupVersion())
	if err != nil {
		return object // the type belongs to another group, such as the options of a subresource
	}
	return converted
}

func internal(object runtime.Object) bool {
	kinds, _, err := legacyscheme.Scheme.ObjectKinds(object)
	return err == nil && len(kinds) > 0 && kinds[0].Version == runtime.APIVersionInternal
}

// writeBack copies the plugin's changes to the request's object.
func (a *wireAttributes) writeBack() error {
	original := a.Attributes.GetObject()
	if a.object == nil || a.object == original {
		return nil
	}
	changed := reflect.New(reflect.TypeOf(original).Elem())
	if err := legacyscheme.Scheme.Convert(a.object, changed.Interface(), nil); err != nil {
		return fmt.Errorf("convert %s after admission: %w", a.GetKind(), err)
	}
	reflect.ValueOf(original).Elem().Set(changed.Elem())
	return nil
}
