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

// wanted is an object of a template and where it is made.
type wanted struct {
	object  *unstructured.Unstructured
	mapping *meta.RESTMapping
}

// namespaced are the objects of the wanted one's kind and project.
func (w wanted) namespaced(client dynamic.Interface) dynamic.ResourceInterface {
	if w.mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return client.Resource(w.mapping.Resource)
	}
	return client.Resource(w.mapping.Resource).Namespace(w.object.GetNamespace())
}

// instantiate makes the objects of an instance, all or, where the requester lacks the right to any, none.
func (l *loop) instantiate(ctx context.Context, instance *templatev1.TemplateInstance) error {
	requester := instance.Spec.Requester
	if requester == nil || requester.Username == "" {
		return final(errors.New("spec.requester.username is not set"))
	}
	template, err := l.filled(ctx, instance)
	if err != nil {
		return err
	}
	all, err := l.wanted(template, instance.Namespace)
	if err != nil {
		return err
	}
	for _, one := range all {
		if err := l.mayCreate(ctx, requester, one); err != nil {
			return err
		}
	}
	client, err := dynamic.NewForConfig(as(l.config, requester))
	if err != nil {
		return fmt.Errorf("connect as requester: %w", err)
	}
	if err := l.note(ctx, instance, all); err != nil {
		return err
	}
	for i, one := range all {
		made, err := l.create(ctx, client, instance.UID, one)
		if err != nil {
			return fmt.Errorf("create %s %q: %w", one.object.GetKind(), one.object.GetName(), err)
		}
		if owns(instance.UID, made) {
			instance.Status.Objects[i].Ref = reference(made)
		}
	}
	set(instance, templatev1.TemplateInstanceReady, corev1.ConditionFalse, "Waiting", "Waiting for all resources to report ready.")
	return l.update(ctx, instance)
}

// note writes down which objects are about to be made, so that they can be removed whatever happens in between. They have no identity yet.
func (l *loop) note(ctx context.Context, instance *templatev1.TemplateInstance, all []wanted) error {
	instance.Status.Objects = nil
	for _, one := range all {
		instance.Status.Objects = append(instance.Status.Objects, templatev1.TemplateInstanceObject{Ref: reference(one.object)})
	}
	return l.update(ctx, instance)
}

func reference(object *unstructured.Unstructured) corev1.ObjectReference {
	return corev1.ObjectReference{
		APIVersion: object.GetAPIVersion(), Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID(),
	}
}

// filled is the instance's template with the values of its secret, processed.
func (l *loop) filled(ctx context.Context, instance *templatev1.TemplateInstance) (*templatev1.Template, error) {
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
			return nil, judged(fmt.Errorf("read the values of parameters: %w", err))
		}
		for i := range template.Parameters {
			if value, given := secret.Data[template.Parameters[i].Name]; given {
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

// seed is what the value of a parameter is generated from.
func (l *loop) seed(uid types.UID, parameter string) (seed [32]byte) {
	mac := hmac.New(sha256.New, l.secret)
	fmt.Fprintf(mac, "template instance %s, parameter %s", uid, parameter)
	copy(seed[:], mac.Sum(nil))
	return seed
}

// wanted finds where the objects of a template are made. Those of old API versions are brought to current ones.
func (l *loop) wanted(template *templatev1.Template, namespace string) (all []wanted, err error) {
	for i, raw := range template.Objects {
		text, _ := manifest.Convert(raw.Raw)
		for _, document := range bytes.Split(text, []byte("\n---\n")) {
			object := &unstructured.Unstructured{}
			if err := yaml.Unmarshal(document, &object.Object); err != nil {
				return nil, final(fmt.Errorf("read objects[%d]: %w", i, err))
			}
			if object.GetName() == "" {
				return nil, final(fmt.Errorf("read objects[%d]: it has no name", i))
			}
			mapping, err := l.mapping(object)
			if err != nil {
				return nil, judged(fmt.Errorf("find kind of objects[%d]: %w", i, err))
			}
			if mapping.Scope.Name() == meta.RESTScopeNameRoot {
				object.SetNamespace("")
			} else if object.GetNamespace() == "" {
				object.SetNamespace(namespace)
			}
			all = append(all, wanted{object, mapping})
		}
	}
	return all, nil
}

// mapping finds the resource of an object's kind; one that was not there a moment ago may have been defined since.
func (l *loop) mapping(object *unstructured.Unstructured) (*meta.RESTMapping, error) {
	kind := object.GroupVersionKind()
	mapping, err := l.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		l.mapper.Reset()
		mapping, err = l.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	}
	return mapping, err
}

// create makes an object, or finds the one that this instance made before it was interrupted.
func (l *loop) create(ctx context.Context, client dynamic.Interface, owner types.UID, one wanted) (*unstructured.Unstructured, error) {
	made, err := one.namespaced(client).Create(ctx, one.object, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return made, judged(err)
	}
	found, unread := one.namespaced(l.objects).Get(ctx, one.object.GetName(), metav1.GetOptions{})
	switch {
	case apierrors.IsMethodNotSupported(unread): // a request for something else, such as a project
		return nil, judged(err)
	case unread != nil:
		return nil, unread
	case !owns(owner, found):
		return nil, judged(err)
	}
	return found, nil
}

// owns reports whether an object was made for an instance. The answer to a request need not be: a review has no identity and is kept nowhere, and
// a DeploymentConfigRollback is answered with a configuration that was there before.
func owns(owner types.UID, object *unstructured.Unstructured) bool {
	return object.GetUID() != "" && object.GetLabels()[templatev1.TemplateInstanceOwner] == string(owner)
}

// as is a connection with the rights of a requester.
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
