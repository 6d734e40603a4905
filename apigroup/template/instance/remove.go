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

// remove deletes the objects of a deleted instance, and then removes the instance's finalizer. It
// keeps an object that another client has recreated.
func (l *reconciler) remove(ctx context.Context, instance *templatev1.TemplateInstance) error {
	if !slices.Contains(instance.Finalizers, templatev1.TemplateInstanceFinalizer) {
		return nil
	}
	for _, entry := range instance.Status.Objects {
		if err := l.delete(ctx, instance.UID, entry); err != nil {
			return fmt.Errorf("delete %s %q: %w", entry.Ref.Kind, entry.Ref.Name, err)
		}
	}
	if err := l.forget(ctx, instance); err != nil {
		return err
	}
	instance.Finalizers = slices.DeleteFunc(instance.Finalizers, func(f string) bool { return f == templatev1.TemplateInstanceFinalizer })
	_, err := l.client.TemplateV1().TemplateInstances(instance.Namespace).Update(ctx, instance, metav1.UpdateOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("remove finalizer: %w", err)
	}
	return nil
}

// forget deletes the template service broker's record of an instance, and with it the parameter
// values. The broker cannot be relied on to delete the record, because the platform might never
// send the broker another request for the instance.
func (l *reconciler) forget(ctx context.Context, instance *templatev1.TemplateInstance) error {
	for _, owner := range instance.OwnerReferences {
		if owner.Kind != "BrokerTemplateInstance" {
			continue
		}
		records := l.client.TemplateV1().BrokerTemplateInstances()
		record, err := records.Get(ctx, owner.Name, metav1.GetOptions{})
		// Users can set any owner. A record of a different instance must be kept.
		if err == nil && (record.UID != owner.UID || record.Spec.TemplateInstance.Namespace != instance.Namespace ||
			record.Spec.TemplateInstance.Name != instance.Name) {
			continue
		}
		if err == nil {
			err = records.Delete(ctx, owner.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &owner.UID}})
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete template service broker record %q: %w", owner.Name, err)
		}
	}
	return nil
}

// delete deletes an object. An entry without a UID was recorded before its object was created. In
// this case, the object is deleted only if its label contains the instance's UID.
func (l *reconciler) delete(ctx context.Context, owner types.UID, entry templatev1.TemplateInstanceObject) error {
	item, err := l.itemOf(entry)
	if meta.IsNoMatchError(err) {
		return nil // the kind was deleted together with all of its objects
	}
	if err != nil {
		return err
	}
	uid := entry.Ref.UID
	if uid == "" {
		object, err := item.resource(l.objects).Get(ctx, entry.Ref.Name, metav1.GetOptions{})
		// An object that cannot be read is not stored.
		if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
			return nil
		}
		if err != nil {
			return err
		}
		if !owns(owner, object) {
			return nil
		}
		uid = object.GetUID()
	}
	err = item.resource(l.objects).Delete(ctx, entry.Ref.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &uid}, PropagationPolicy: ptr.To(metav1.DeletePropagationForeground),
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // conflict: it was recreated
		return nil
	}
	return err
}

// itemOf returns the object that a status entry refers to, without its content.
func (l *reconciler) itemOf(entry templatev1.TemplateInstanceObject) (item, error) {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(entry.Ref.APIVersion)
	object.SetKind(entry.Ref.Kind)
	object.SetNamespace(entry.Ref.Namespace)
	object.SetName(entry.Ref.Name)
	mapping, err := l.mapping(object)
	return item{object, mapping}, err
}
