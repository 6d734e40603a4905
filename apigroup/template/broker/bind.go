package broker

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	routev1 "github.com/openshift/api/route/v1"
	templatev1 "github.com/openshift/api/template/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// exposing are the resources of the objects that may expose something, by kind. Routes of templates with old names are made in their group.
func exposing() map[schema.GroupKind]schema.GroupVersionResource {
	core := corev1.SchemeGroupVersion
	return map[schema.GroupKind]schema.GroupVersionResource{
		{Kind: "ConfigMap"}:                       core.WithResource("configmaps"),
		{Kind: "Secret"}:                          core.WithResource("secrets"),
		{Kind: "Service"}:                         core.WithResource("services"),
		{Group: routev1.GroupName, Kind: "Route"}: routev1.GroupVersion.WithResource("routes"),
	}
}

// bind hands out what the objects of an instance expose to its user, and notes the binding.
func (b *broker) bind(r *http.Request) (response, error) {
	id, err := identity(r, "binding")
	if err != nil {
		return response{}, err
	}
	var wanted bindRequest
	if err := read(r, &wanted); err != nil {
		return response{}, err
	}
	if len(wanted.Parameters) > 0 {
		return response{}, refuse(http.StatusBadRequest, "parameters: a binding has none")
	}
	asked, err := b.known(r, "get", "update")
	if err != nil {
		return response{}, err
	}
	if asked.record == nil {
		return response{}, refuse(http.StatusBadRequest, "there is no instance %q", asked.id)
	}
	instance, err := b.instance(r.Context(), asked.record)
	if err != nil {
		return response{}, err
	}
	if err := bindableAs(instance, asked.id, wanted); err != nil {
		return response{}, err
	}
	exposed, err := asked.who.credentials(r.Context(), instance)
	if err != nil {
		return response{}, err
	}
	code := http.StatusOK
	err = b.change(r.Context(), asked.record, func(spec *templatev1.BrokerTemplateInstanceSpec) bool {
		if slices.Contains(spec.BindingIDs, id) {
			return false
		}
		spec.BindingIDs, code = append(spec.BindingIDs, id), http.StatusCreated
		return true
	})
	if err != nil {
		return response{}, fmt.Errorf("note binding %q: %w", id, err)
	}
	return response{code, binding{exposed}}, nil
}

// bindableAs says why an instance cannot be bound to.
func bindableAs(instance *templatev1.TemplateInstance, id string, wanted bindRequest) error {
	if instance == nil {
		return refuse(http.StatusBadRequest, "the template instance of instance %q was deleted", id)
	}
	_, ready := holds(instance, templatev1.TemplateInstanceReady)
	switch {
	case wanted.ServiceID != string(instance.Spec.Template.UID) || wanted.PlanID != wanted.ServiceID:
		return refuse(http.StatusBadRequest, "instance %q is of service and plan %q", id, instance.Spec.Template.UID)
	case !bindable(&instance.Spec.Template):
		return refuse(http.StatusBadRequest, "template %q says that it is not bindable (%s)", instance.Spec.Template.Name, bindableAnnotation)
	case !ready || instance.DeletionTimestamp != nil:
		return busy("instance %q is not ready", id)
	}
	return nil
}

// credentials are what the objects of an instance expose.
func (a *actor) credentials(ctx context.Context, instance *templatev1.TemplateInstance) (map[string]string, error) {
	found, resources := map[string]string{}, exposing()
	for _, made := range instance.Status.Objects {
		resource, ok := resources[made.Ref.GroupVersionKind().GroupKind()]
		if !ok {
			continue
		}
		object, err := a.objects.Resource(resource).Namespace(made.Ref.Namespace).Get(ctx, made.Ref.Name, metav1.GetOptions{})
		if err == nil && object.GetUID() != made.Ref.UID {
			err = refuse(http.StatusBadRequest, "it was replaced by another one")
		}
		if err == nil {
			err = expose(found, object)
		}
		if err != nil {
			return nil, fmt.Errorf("read %s %q: %w", made.Ref.Kind, made.Ref.Name, err)
		}
	}
	return found, nil
}

// expose adds what an object exposes. The data of a Secret are the bytes, not their base64.
func expose(found map[string]string, object *unstructured.Unstructured) error {
	var content any = object.Object
	if object.GroupVersionKind() == corev1.SchemeGroupVersion.WithKind("Secret") {
		secret := &corev1.Secret{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, secret); err != nil {
			return fmt.Errorf("convert: %w", err)
		}
		content = secret
	}
	return exposed(found, object.GetAnnotations(), content)
}

// unbind forgets a binding.
func (b *broker) unbind(r *http.Request) (response, error) {
	id, err := identity(r, "binding")
	if err != nil {
		return response{}, err
	}
	asked, err := b.known(r, "get", "delete")
	if err != nil {
		return response{}, err
	}
	code := http.StatusGone
	if asked.record == nil {
		return response{code, nothing{}}, nil
	}
	err = b.change(r.Context(), asked.record, func(spec *templatev1.BrokerTemplateInstanceSpec) bool {
		if !slices.Contains(spec.BindingIDs, id) {
			return false
		}
		spec.BindingIDs = slices.DeleteFunc(spec.BindingIDs, func(known string) bool { return known == id })
		code = http.StatusOK
		return true
	})
	if err != nil {
		return response{}, fmt.Errorf("forget binding %q: %w", id, err)
	}
	return response{code, nothing{}}, nil
}
