package instance

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"

	templatev1 "github.com/openshift/api/template/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/apigroup/template/process"
	"github.com/slipway-platform/slipway/cli/manifest"
)

// item contains an object of a template and the object's resource.
type item struct {
	object  *unstructured.Unstructured
	mapping *meta.RESTMapping
}

// resource returns the client for the object's resource, in the object's namespace.
func (w item) resource(client dynamic.Interface) dynamic.ResourceInterface {
	if w.mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return client.Resource(w.mapping.Resource)
	}
	return client.Resource(w.mapping.Resource).Namespace(w.object.GetNamespace())
}

// instantiate creates all objects of an instance. If the requester is not allowed to create one of
// the objects, instantiate creates no objects.
func (l *reconciler) instantiate(ctx context.Context, instance *templatev1.TemplateInstance) error {
	requester := instance.Spec.Requester
	if requester == nil || requester.Username == "" {
		return final(errors.New("spec.requester.username is not set"))
	}
	template, err := l.process(ctx, instance)
	if err != nil {
		return err
	}
	all, err := l.items(template, instance.Namespace)
	if err != nil {
		return err
	}
	for _, item := range all {
		if err := l.mayCreate(ctx, requester, item); err != nil {
			return err
		}
	}
	client, err := dynamic.NewForConfig(as(l.config, requester))
	if err != nil {
		return fmt.Errorf("connect as requester: %w", err)
	}
	if err := l.recordObjects(ctx, instance, all); err != nil {
		return err
	}
	for i, item := range all {
		object, err := l.create(ctx, client, instance.UID, item)
		if err != nil {
			return fmt.Errorf("create %s %q: %w", item.object.GetKind(), item.object.GetName(), err)
		}
		if owns(instance.UID, object) {
			instance.Status.Objects[i].Ref = reference(object)
		}
	}
	set(instance, templatev1.TemplateInstanceReady, corev1.ConditionFalse, "Waiting", "Waiting for all resources to report ready.")
	return l.update(ctx, instance)
}

// recordObjects writes the objects, without their UIDs, to the status before the objects are
// created, so that they can be deleted after an interruption.
func (l *reconciler) recordObjects(ctx context.Context, instance *templatev1.TemplateInstance, all []item) error {
	instance.Status.Objects = nil
	for _, item := range all {
		instance.Status.Objects = append(instance.Status.Objects, templatev1.TemplateInstanceObject{Ref: reference(item.object)})
	}
	return l.update(ctx, instance)
}

func reference(object *unstructured.Unstructured) corev1.ObjectReference {
	return corev1.ObjectReference{
		APIVersion: object.GetAPIVersion(), Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID(),
	}
}

// process returns the instance's template, processed with the values in the instance's secret.
func (l *reconciler) process(ctx context.Context, instance *templatev1.TemplateInstance) (*templatev1.Template, error) {
	template := instance.Spec.Template.DeepCopy()
	requester := instance.Spec.Requester
	if err := l.may(ctx, requester, attributes("create", templatev1.GroupName, "templateconfigs", instance.Namespace, template.Name)); err != nil {
		return nil, err
	}
	if reference := instance.Spec.Secret; reference != nil {
		if err := l.may(ctx, requester, attributes("get", "", "secrets", instance.Namespace, reference.Name)); err != nil {
			return nil, err
		}
		secret, err := l.kube.CoreV1().Secrets(instance.Namespace).Get(ctx, reference.Name, metav1.GetOptions{})
		if err != nil {
			return nil, classify(fmt.Errorf("read parameter values: %w", err))
		}
		for i := range template.Parameters {
			if value, ok := secret.Data[template.Parameters[i].Name]; ok {
				template.Parameters[i].Value = string(value)
			}
		}
	}
	if template.ObjectLabels == nil {
		template.ObjectLabels = map[string]string{}
	}
	template.ObjectLabels[templatev1.TemplateInstanceOwner] = string(instance.UID)
	problems := process.Seeded(template, func(parameter string) [32]byte { return l.seed(instance.UID, parameter) })
	if len(problems) > 0 {
		return nil, final(fmt.Errorf("process template: %w", problems.ToAggregate()))
	}
	return template, nil
}

// seed returns the seed for a parameter's generated value.
func (l *reconciler) seed(uid types.UID, parameter string) (seed [32]byte) {
	mac := hmac.New(sha256.New, l.secret)
	fmt.Fprintf(mac, "template instance %s, parameter %s", uid, parameter)
	copy(seed[:], mac.Sum(nil))
	return seed
}

// items returns a template's objects with their resources. It converts old API versions to current
// versions.
func (l *reconciler) items(template *templatev1.Template, namespace string) (all []item, err error) {
	for i, raw := range template.Objects {
		text, _ := manifest.Convert(raw.Raw)
		for _, document := range bytes.Split(text, []byte("\n---\n")) {
			object := &unstructured.Unstructured{}
			if err := yaml.Unmarshal(document, &object.Object); err != nil {
				return nil, final(fmt.Errorf("parse objects[%d]: %w", i, err))
			}
			if object.GetName() == "" {
				return nil, final(fmt.Errorf("parse objects[%d]: the object has no name", i))
			}
			mapping, err := l.mapping(object)
			if err != nil {
				return nil, classify(fmt.Errorf("find kind of objects[%d]: %w", i, err))
			}
			if mapping.Scope.Name() == meta.RESTScopeNameRoot {
				object.SetNamespace("")
			} else if object.GetNamespace() == "" {
				object.SetNamespace(namespace)
			}
			all = append(all, item{object, mapping})
		}
	}
	return all, nil
}

// mapping returns the resource for an object's kind. If the kind is unknown, it refreshes the
// discovery information, because the kind might be new.
func (l *reconciler) mapping(object *unstructured.Unstructured) (*meta.RESTMapping, error) {
	kind := object.GroupVersionKind()
	mapping, err := l.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		l.mapper.Reset()
		mapping, err = l.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	}
	return mapping, err
}

// create creates an object, or returns the object that this instance created before an
// interruption.
func (l *reconciler) create(ctx context.Context, client dynamic.Interface, owner types.UID, item item) (*unstructured.Unstructured, error) {
	created, err := item.resource(client).Create(ctx, item.object, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return created, classify(err)
	}
	existing, getErr := item.resource(l.objects).Get(ctx, item.object.GetName(), metav1.GetOptions{})
	switch {
	case apierrors.IsMethodNotSupported(getErr):
		// Objects of the resource cannot be read, as is the case for project requests.
		return nil, classify(err)
	case getErr != nil:
		return nil, getErr
	case !owns(owner, existing):
		return nil, classify(err)
	}
	return existing, nil
}

// owns reports whether an object was created for an instance. The response to a create request can
// be an object that was not created. A review has no UID and is not stored, and a
// DeploymentConfigRollback returns an existing configuration.
func owns(owner types.UID, object *unstructured.Unstructured) bool {
	return object.GetUID() != "" && object.GetLabels()[templatev1.TemplateInstanceOwner] == string(owner)
}

// as returns a client configuration with a requester's permissions.
func as(config *rest.Config, requester *templatev1.TemplateInstanceRequester) *rest.Config {
	limited := rest.CopyConfig(config)
	limited.Impersonate = rest.ImpersonationConfig{
		UserName: requester.Username, UID: requester.UID, Groups: requester.Groups, Extra: map[string][]string{},
	}
	for key, values := range requester.Extra {
		limited.Impersonate.Extra[key] = values
	}
	return limited
}
