package broker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	templatev1 "github.com/openshift/api/template/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/internal/osbserver"
)

const (
	// externalID is the annotation that OpenShift 3 sets on the objects of an instance that a
	// broker has created.
	externalID = "openservicebroker.openshift.io/instance-external-id"
)

// provision creates an instance of a template: first its record, then the Secret with the parameter
// values, and then the TemplateInstance. If the request is repeated, it returns the existing
// instance. A different request for the same instance is a conflict.
func (b *broker) provision(r *http.Request) (osbserver.Response, error) {
	id, err := osbserver.ID(r, "instance")
	if err != nil {
		return osbserver.Response{}, err
	}
	var body provisionRequest
	if err := osbserver.Read(r, &body); err != nil {
		return osbserver.Response{}, err
	}
	if err := body.validate(); err != nil {
		return osbserver.Response{}, err
	}
	if err := osbserver.Incomplete(r); err != nil {
		return osbserver.Response{}, err
	}
	actor, err := b.actor(r)
	if err != nil {
		return osbserver.Response{}, err
	}
	template, err := b.template(r.Context(), actor, body)
	if err != nil {
		return osbserver.Response{}, err
	}
	namespace := body.Context.Namespace
	if err := b.may(r, actor.user, "create", namespace, id); err != nil {
		return osbserver.Response{}, err
	}
	record, created, err := b.record(r.Context(), namespace, id)
	if err != nil {
		return osbserver.Response{}, err
	}
	secret, instance, err := actor.order(r.Context(), record, template, body.Parameters)
	if err != nil {
		if created { // after a rejection, the platform sends no other request for the instance
			_, forgetErr := b.forget(r.Context(), record)
			err = errors.Join(err, forgetErr)
		}
		return osbserver.Response{}, err
	}
	err = b.change(r.Context(), record, func(spec *templatev1.BrokerTemplateInstanceSpec) bool {
		complete := spec.Secret.UID == secret.UID && spec.TemplateInstance.UID == instance.UID
		spec.Secret.UID, spec.TemplateInstance.UID = secret.UID, instance.UID
		return !complete
	})
	if err != nil {
		return osbserver.Response{}, fmt.Errorf("complete the record of instance %q: %w", id, err)
	}
	code := http.StatusAccepted
	if _, ready := hasCondition(instance, templatev1.TemplateInstanceReady); ready {
		code = http.StatusOK
	}
	return osbserver.Response{Code: code, Body: operation{provisioning}}, nil
}

func (p *provisionRequest) validate() error {
	switch {
	case p.ServiceID == "":
		return osbserver.Refuse(http.StatusBadRequest, "service_id is missing")
	case p.PlanID != p.ServiceID:
		return osbserver.Refuse(http.StatusBadRequest, "plan_id is %q; service %q has one plan with the same ID", p.PlanID, p.ServiceID)
	case p.Context.Platform != osbserver.Platform:
		return osbserver.Refuse(http.StatusBadRequest, "context.platform is %q, must be %s", p.Context.Platform, osbserver.Platform)
	}
	if errs := validation.ValidateNamespaceName(p.Context.Namespace, false); len(errs) > 0 {
		return osbserver.Refuse(http.StatusBadRequest, "context.namespace %q: %s", p.Context.Namespace, strings.Join(errs, "; "))
	}
	return nil
}

// template returns the requested template with the user's labels added. It reads the template with
// the user's permissions.
func (b *broker) template(ctx context.Context, actor *actor, body provisionRequest) (*templatev1.Template, error) {
	templates, err := b.templates(ctx)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(templates, func(t templatev1.Template) bool { return string(t.UID) == body.ServiceID })
	if at < 0 {
		return nil, osbserver.Refuse(http.StatusBadRequest, "service %q does not exist", body.ServiceID)
	}
	template, err := actor.templates.TemplateV1().Templates(templates[at].Namespace).Get(ctx, templates[at].Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read template as %q: %w", actor.user.GetName(), err)
	}
	for _, name := range slices.Sorted(maps.Keys(body.Parameters)) {
		exists := slices.ContainsFunc(template.Parameters, func(p templatev1.Parameter) bool { return p.Name == name })
		if !exists && name != customLabels {
			return nil, osbserver.Refuse(http.StatusBadRequest, "parameters.%s: template %q has no such parameter", name, template.Name)
		}
	}
	template.ResourceVersion, template.ManagedFields = "", nil
	label(template, body.Parameters[customLabels])
	return template, nil
}

// label adds labels in the form `a=b, c` to a template. It replaces spaces within a label with
// underscores.
func label(template *templatev1.Template, list string) {
	if template.ObjectLabels == nil {
		template.ObjectLabels = map[string]string{}
	}
	tidy := func(text string) string { return strings.ReplaceAll(strings.TrimSpace(text), " ", "_") }
	for item := range strings.SplitSeq(list, ",") {
		if key, value, _ := strings.Cut(item, "="); tidy(key) != "" {
			template.ObjectLabels[tidy(key)] = tidy(value)
		}
	}
}

// record creates an instance's record, or returns the existing record.
func (b *broker) record(ctx context.Context, namespace, id string) (record *templatev1.BrokerTemplateInstance, created bool, err error) {
	records := b.client.TemplateV1().BrokerTemplateInstances()
	record, err = records.Create(ctx, &templatev1.BrokerTemplateInstance{
		ObjectMeta: metav1.ObjectMeta{Name: id},
		Spec: templatev1.BrokerTemplateInstanceSpec{
			TemplateInstance: corev1.ObjectReference{Kind: "TemplateInstance", Namespace: namespace, Name: id},
			Secret:           corev1.ObjectReference{Kind: "Secret", Namespace: namespace, Name: id},
		},
	}, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return record, true, err
	}
	record, err = records.Get(ctx, id, metav1.GetOptions{})
	switch {
	case err != nil:
		return nil, false, fmt.Errorf("read the record of instance %q: %w", id, err)
	case record.Spec.TemplateInstance.Namespace != namespace:
		return nil, false, osbserver.Refuse(http.StatusConflict, "another instance %q exists", id)
	case record.DeletionTimestamp != nil:
		return nil, false, osbserver.Busy("instance %q is being deleted", id)
	}
	return record, false, nil
}

// owned returns the metadata of an object that is deleted together with its instance's record.
func owned(record *templatev1.BrokerTemplateInstance) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: record.Name, Annotations: map[string]string{externalID: record.Name},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: templatev1.GroupVersion.String(), Kind: "BrokerTemplateInstance", Name: record.Name, UID: record.UID,
		}},
	}
}

// checkOwner rejects an object that has an instance's name but is not owned by the instance's
// record, such as an object of an earlier instance.
func checkOwner(kind string, object metav1.Object, record *templatev1.BrokerTemplateInstance) error {
	if slices.ContainsFunc(object.GetOwnerReferences(), func(owner metav1.OwnerReference) bool { return owner.UID == record.UID }) {
		return nil
	}
	return osbserver.Busy("a %s %q exists and does not belong to this instance", kind, object.GetName())
}

// order creates the Secret and the TemplateInstance of an instance, or returns the existing
// objects.
func (a *actor) order(ctx context.Context, record *templatev1.BrokerTemplateInstance, template *templatev1.Template,
	parameters map[string]string) (secret *corev1.Secret, instance *templatev1.TemplateInstance, err error) {
	if secret, err = a.values(ctx, record, parameters); err == nil {
		instance, err = a.instance(ctx, record, template)
	}
	return secret, instance, err
}

// values creates the Secret with an instance's parameter values, or returns the existing Secret.
func (a *actor) values(ctx context.Context, record *templatev1.BrokerTemplateInstance, parameters map[string]string) (*corev1.Secret, error) {
	data := make(map[string][]byte, len(parameters))
	for name, value := range parameters {
		data[name] = []byte(value)
	}
	secrets := a.kube.CoreV1().Secrets(record.Spec.Secret.Namespace)
	created, err := secrets.Create(ctx, &corev1.Secret{ObjectMeta: owned(record), Data: data}, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return created, err
	}
	existing, err := secrets.Get(ctx, record.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	if err := checkOwner("Secret", existing, record); err != nil {
		return nil, err
	}
	if !maps.EqualFunc(existing.Data, data, bytes.Equal) {
		return nil, osbserver.Refuse(http.StatusConflict, "instance %q exists with different parameters", record.Name)
	}
	return existing, nil
}

// instance creates the TemplateInstance, or returns the existing TemplateInstance.
func (a *actor) instance(ctx context.Context, record *templatev1.BrokerTemplateInstance,
	template *templatev1.Template) (*templatev1.TemplateInstance, error) {
	instances := a.templates.TemplateV1().TemplateInstances(record.Spec.TemplateInstance.Namespace)
	created, err := instances.Create(ctx, &templatev1.TemplateInstance{
		ObjectMeta: owned(record),
		Spec:       templatev1.TemplateInstanceSpec{Template: *template, Secret: &corev1.LocalObjectReference{Name: record.Name}},
	}, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return created, err
	}
	existing, err := instances.Get(ctx, record.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	if err := checkOwner("TemplateInstance", existing, record); err != nil {
		return nil, err
	}
	switch {
	case existing.Spec.Template.UID != template.UID:
		return nil, osbserver.Refuse(http.StatusConflict, "instance %q belongs to another service", record.Name)
	case existing.DeletionTimestamp != nil:
		return nil, osbserver.Busy("instance %q is being deleted", record.Name)
	}
	return existing, nil
}
