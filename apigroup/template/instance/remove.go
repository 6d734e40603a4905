package instance

import (
	"context"
	"fmt"
	"slices"

	templatev1 "github.com/openshift/api/template/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// remove deletes the objects of an instance that is deleted, and lets it go. An object that was made anew by somebody else stays.
func (l *loop) remove(ctx context.Context, instance *templatev1.TemplateInstance) error {
	if !slices.Contains(instance.Finalizers, templatev1.TemplateInstanceFinalizer) {
		return nil
	}
	for _, made := range instance.Status.Objects {
		if err := l.delete(ctx, instance.UID, made); err != nil {
			return fmt.Errorf("delete %s %q: %w", made.Ref.Kind, made.Ref.Name, err)
		}
	}
	instance.Finalizers = slices.DeleteFunc(instance.Finalizers, func(f string) bool { return f == templatev1.TemplateInstanceFinalizer })
	_, err := l.client.TemplateV1().TemplateInstances(instance.Namespace).Update(ctx, instance, metav1.UpdateOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("remove finalizer: %w", err)
	}
	return nil
}

// delete removes an object. One without identity was about to be made, and is the owner's if its label says so.
func (l *loop) delete(ctx context.Context, owner types.UID, made templatev1.TemplateInstanceObject) error {
	one, err := l.referred(made)
	if meta.IsNoMatchError(err) {
		return nil // its kind is gone, and all objects with it
	}
	if err != nil {
		return err
	}
	uid := made.Ref.UID
	if uid == "" {
		found, err := one.namespaced(l.objects).Get(ctx, made.Ref.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) { // nobody keeps what cannot be read
			return nil
		}
		if err != nil {
			return err
		}
		if !owns(owner, found) {
			return nil
		}
		uid = found.GetUID()
	}
	err = one.namespaced(l.objects).Delete(ctx, made.Ref.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &uid}, PropagationPolicy: ptr.To(metav1.DeletePropagationForeground),
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // a conflict: it has another identity
		return nil
	}
	return err
}

// referred is the object that a status refers to, without its content.
func (l *loop) referred(made templatev1.TemplateInstanceObject) (wanted, error) {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(made.Ref.APIVersion)
	object.SetKind(made.Ref.Kind)
	object.SetNamespace(made.Ref.Namespace)
	object.SetName(made.Ref.Name)
	mapping, err := l.mapping(object)
	return wanted{object, mapping}, err
}
