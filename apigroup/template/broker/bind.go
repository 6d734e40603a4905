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

	"github.com/slipway-platform/slipway/internal/osbserver"
)

// exposing returns the kinds of objects that can expose values, and the objects' resources. Only
// the current API group of routes is listed, because the controller converts routes in the legacy
// API version.
func exposing() map[schema.GroupKind]schema.GroupVersionResource {
	core := corev1.SchemeGroupVersion
	return map[schema.GroupKind]schema.GroupVersionResource{
		{Kind: "ConfigMap"}:                       core.WithResource("configmaps"),
		{Kind: "Secret"}:                          core.WithResource("secrets"),
		{Kind: "Service"}:                         core.WithResource("services"),
		{Group: routev1.GroupName, Kind: "Route"}: routev1.GroupVersion.WithResource("routes"),
	}
}

// bind returns the values that an instance's objects expose, and records the binding.
func (b *broker) bind(r *http.Request) (osbserver.Response, error) {
	id, err := osbserver.ID(r, "binding")
	if err != nil {
		return osbserver.Response{}, err
	}
	var body bindRequest
	if err := osbserver.Read(r, &body); err != nil {
		return osbserver.Response{}, err
	}
	if len(body.Parameters) > 0 {
		return osbserver.Response{}, osbserver.Refuse(http.StatusBadRequest, "parameters: a binding has none")
	}
	target, err := b.target(r, "get", "update")
	if err != nil {
		return osbserver.Response{}, err
	}
	if target.record == nil {
		return osbserver.Response{}, osbserver.Refuse(http.StatusBadRequest, "instance %q does not exist", target.id)
	}
	instance, err := b.instance(r.Context(), target.record)
	if err != nil {
		return osbserver.Response{}, err
	}
	if err := checkBindable(instance, target.id, body); err != nil {
		return osbserver.Response{}, err
	}
	exposed, err := target.actor.credentials(r.Context(), instance)
	if err != nil {
		return osbserver.Response{}, err
	}
	code := http.StatusOK
	err = b.change(r.Context(), target.record, func(spec *templatev1.BrokerTemplateInstanceSpec) bool {
		if slices.Contains(spec.BindingIDs, id) {
			return false
		}
		spec.BindingIDs, code = append(spec.BindingIDs, id), http.StatusCreated
		return true
	})
	if err != nil {
		return osbserver.Response{}, fmt.Errorf("record binding %q: %w", id, err)
	}
	return osbserver.Response{Code: code, Body: binding{exposed}}, nil
}

// checkBindable returns an error if an instance does not support the binding.
func checkBindable(instance *templatev1.TemplateInstance, id string, body bindRequest) error {
	if instance == nil {
		return osbserver.Refuse(http.StatusBadRequest, "the template instance of instance %q was deleted", id)
	}
	_, ready := hasCondition(instance, templatev1.TemplateInstanceReady)
	switch {
	case body.ServiceID != string(instance.Spec.Template.UID) || body.PlanID != body.ServiceID:
		return osbserver.Refuse(http.StatusBadRequest, "instance %q belongs to service and plan %q", id, instance.Spec.Template.UID)
	case !bindable(&instance.Spec.Template):
		return osbserver.Refuse(http.StatusBadRequest, "template %q is not bindable (%s)", instance.Spec.Template.Name, bindableAnnotation)
	case !ready || instance.DeletionTimestamp != nil:
		return osbserver.Busy("instance %q is not ready", id)
	}
	return nil
}

// credentials returns the values that an instance's objects expose.
func (a *actor) credentials(ctx context.Context, instance *templatev1.TemplateInstance) (map[string]string, error) {
	values, resources := map[string]string{}, exposing()
	for _, entry := range instance.Status.Objects {
		resource, ok := resources[entry.Ref.GroupVersionKind().GroupKind()]
		if !ok {
			continue
		}
		object, err := a.objects.Resource(resource).Namespace(entry.Ref.Namespace).Get(ctx, entry.Ref.Name, metav1.GetOptions{})
		if err == nil && object.GetUID() != entry.Ref.UID {
			err = osbserver.Refuse(http.StatusBadRequest, "the object was replaced")
		}
		if err == nil {
			err = expose(values, object)
		}
		if err != nil {
			return nil, fmt.Errorf("read %s %q: %w", entry.Ref.Kind, entry.Ref.Name, err)
		}
	}
	return values, nil
}

// expose adds to the values map the values that an object exposes. It base64-decodes the data of a
// Secret.
func expose(values map[string]string, object *unstructured.Unstructured) error {
	var content any = object.Object
	if object.GroupVersionKind() == corev1.SchemeGroupVersion.WithKind("Secret") {
		secret := &corev1.Secret{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, secret); err != nil {
			return fmt.Errorf("convert secret: %w", err)
		}
		content = secret
	}
	return exposed(values, object.GetAnnotations(), content)
}

// unbind deletes a binding's record.
func (b *broker) unbind(r *http.Request) (osbserver.Response, error) {
	id, err := osbserver.ID(r, "binding")
	if err != nil {
		return osbserver.Response{}, err
	}
	target, err := b.target(r, "get", "delete")
	if err != nil {
		return osbserver.Response{}, err
	}
	code := http.StatusGone
	if target.record == nil {
		return osbserver.Response{Code: code, Body: osbserver.Empty{}}, nil
	}
	err = b.change(r.Context(), target.record, func(spec *templatev1.BrokerTemplateInstanceSpec) bool {
		if !slices.Contains(spec.BindingIDs, id) {
			return false
		}
		spec.BindingIDs = slices.DeleteFunc(spec.BindingIDs, func(existing string) bool { return existing == id })
		code = http.StatusOK
		return true
	})
	if err != nil {
		return osbserver.Response{}, fmt.Errorf("delete the record of binding %q: %w", id, err)
	}
	return osbserver.Response{Code: code, Body: osbserver.Empty{}}, nil
}
