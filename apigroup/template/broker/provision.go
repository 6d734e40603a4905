package broker

import (
	"bytes"
	"context"
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
)

const (
	kubernetesPlatform = "kubernetes"
	// externalID is the annotation with which OpenShift 3 marks what belongs to an instance of a broker.
	externalID = "openservicebroker.openshift.io/instance-external-id"
)

// provision makes an instance of a template: first the record that there is one, then the values of its parameters, then the TemplateInstance.
// The same request again finds what is there; another one for the same instance is a conflict.
func (b *broker) provision(r *http.Request) (response, error) {
	id, err := identity(r, "instance")
	if err != nil {
		return response{}, err
	}
	var asked provisionRequest
	if err := read(r, &asked); err != nil {
		return response{}, err
	}
	if err := asked.validate(); err != nil {
		return response{}, err
	}
	if err := incomplete(r); err != nil {
		return response{}, err
	}
	who, err := b.actor(r)
	if err != nil {
		return response{}, err
	}
	template, err := b.template(r.Context(), who, asked)
	if err != nil {
		return response{}, err
	}
	namespace := asked.Context.Namespace
	if err := b.may(r, who.user, "create", namespace, id); err != nil {
		return response{}, err
	}
	record, err := b.record(r.Context(), namespace, id)
	if err != nil {
		return response{}, err
	}
	secret, err := who.values(r.Context(), record, asked.Parameters)
	if err != nil {
		return response{}, err
	}
	instance, err := who.instance(r.Context(), record, template)
	if err != nil {
		return response{}, err
	}
	err = b.change(r.Context(), record, func(spec *templatev1.BrokerTemplateInstanceSpec) bool {
		known := spec.Secret.UID == secret.UID && spec.TemplateInstance.UID == instance.UID
		spec.Secret.UID, spec.TemplateInstance.UID = secret.UID, instance.UID
		return !known
	})
	if err != nil {
		return response{}, fmt.Errorf("complete the record of instance %q: %w", id, err)
	}
	code := http.StatusAccepted
	if _, ready := holds(instance, templatev1.TemplateInstanceReady); ready {
		code = http.StatusOK
	}
	return response{code, begun{provisioning}}, nil
}

func (p *provisionRequest) validate() error {
	switch {
	case p.ServiceID == "":
		return refuse(http.StatusBadRequest, "service_id is missing")
	case p.PlanID != p.ServiceID:
		return refuse(http.StatusBadRequest, "plan_id is %q; service %q has one plan, whose identity is the same", p.PlanID, p.ServiceID)
	case p.Context.Platform != kubernetesPlatform:
		return refuse(http.StatusBadRequest, "context.platform is %q, and must be %s", p.Context.Platform, kubernetesPlatform)
	}
	if errs := validation.ValidateNamespaceName(p.Context.Namespace, false); len(errs) > 0 {
		return refuse(http.StatusBadRequest, "context.namespace %q: %s", p.Context.Namespace, strings.Join(errs, "; "))
	}
	return nil
}

// template is the template that is asked for, as the user sees it, with the labels that he adds.
func (b *broker) template(ctx context.Context, who *actor, asked provisionRequest) (*templatev1.Template, error) {
	offered, err := b.templates(ctx)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(offered, func(t templatev1.Template) bool { return string(t.UID) == asked.ServiceID })
	if at < 0 {
		return nil, refuse(http.StatusBadRequest, "there is no service %q", asked.ServiceID)
	}
	template, err := who.templates.TemplateV1().Templates(offered[at].Namespace).Get(ctx, offered[at].Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read template as %q: %w", who.user.GetName(), err)
	}
	for _, name := range slices.Sorted(maps.Keys(asked.Parameters)) {
		known := slices.ContainsFunc(template.Parameters, func(p templatev1.Parameter) bool { return p.Name == name })
		if !known && name != customLabels {
			return nil, refuse(http.StatusBadRequest, "parameters.%s: template %q has no such parameter", name, template.Name)
		}
	}
	template.ResourceVersion, template.ManagedFields = "", nil
	label(template, asked.Parameters[customLabels])
	return template, nil
}

// label adds labels to a template, written as `a=b, c`. Blanks within become underscores.
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

// record makes or finds the record of an instance.
func (b *broker) record(ctx context.Context, namespace, id string) (*templatev1.BrokerTemplateInstance, error) {
	records := b.client.TemplateV1().BrokerTemplateInstances()
	made, err := records.Create(ctx, &templatev1.BrokerTemplateInstance{
		ObjectMeta: metav1.ObjectMeta{Name: id},
		Spec: templatev1.BrokerTemplateInstanceSpec{
			TemplateInstance: corev1.ObjectReference{Kind: "TemplateInstance", Namespace: namespace, Name: id},
			Secret:           corev1.ObjectReference{Kind: "Secret", Namespace: namespace, Name: id},
		},
	}, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return made, err
	}
	found, err := records.Get(ctx, id, metav1.GetOptions{})
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the record of instance %q: %w", id, err)
	case found.Spec.TemplateInstance.Namespace != namespace:
		return nil, refuse(http.StatusConflict, "there is another instance %q", id)
	case found.DeletionTimestamp != nil:
		return nil, busy("instance %q is being deleted", id)
	}
	return found, nil
}

// owned is the metadata of what belongs to an instance and goes with its record.
func owned(record *templatev1.BrokerTemplateInstance) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: record.Name, Annotations: map[string]string{externalID: record.Name},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: templatev1.GroupVersion.String(), Kind: "BrokerTemplateInstance", Name: record.Name, UID: record.UID,
		}},
	}
}

// ofAnother refuses what is there under the name of an instance and does not belong to it, such as what is left of one before it.
func ofAnother(kind string, found metav1.Object, record *templatev1.BrokerTemplateInstance) error {
	if slices.ContainsFunc(found.GetOwnerReferences(), func(owner metav1.OwnerReference) bool { return owner.UID == record.UID }) {
		return nil
	}
	return busy("there is a %s %q that does not belong to this instance", kind, found.GetName())
}

// values makes or finds the Secret with the values of an instance's parameters.
func (a *actor) values(ctx context.Context, record *templatev1.BrokerTemplateInstance, parameters map[string]string) (*corev1.Secret, error) {
	data := make(map[string][]byte, len(parameters))
	for name, value := range parameters {
		data[name] = []byte(value)
	}
	secrets := a.kube.CoreV1().Secrets(record.Spec.Secret.Namespace)
	made, err := secrets.Create(ctx, &corev1.Secret{ObjectMeta: owned(record), Data: data}, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return made, err
	}
	found, err := secrets.Get(ctx, record.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	if err := ofAnother("Secret", found, record); err != nil {
		return nil, err
	}
	if !maps.EqualFunc(found.Data, data, bytes.Equal) {
		return nil, refuse(http.StatusConflict, "instance %q has other parameters", record.Name)
	}
	return found, nil
}

// instance makes or finds the TemplateInstance.
func (a *actor) instance(ctx context.Context, record *templatev1.BrokerTemplateInstance, template *templatev1.Template) (*templatev1.TemplateInstance, error) {
	instances := a.templates.TemplateV1().TemplateInstances(record.Spec.TemplateInstance.Namespace)
	made, err := instances.Create(ctx, &templatev1.TemplateInstance{
		ObjectMeta: owned(record),
		Spec:       templatev1.TemplateInstanceSpec{Template: *template, Secret: &corev1.LocalObjectReference{Name: record.Name}},
	}, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return made, err
	}
	found, err := instances.Get(ctx, record.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	if err := ofAnother("TemplateInstance", found, record); err != nil {
		return nil, err
	}
	switch {
	case found.Spec.Template.UID != template.UID:
		return nil, refuse(http.StatusConflict, "instance %q is of another service", record.Name)
	case found.DeletionTimestamp != nil:
		return nil, busy("instance %q is being deleted", record.Name)
	}
	return found, nil
}
