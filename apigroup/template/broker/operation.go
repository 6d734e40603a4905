package broker

import (
	"context"
	"fmt"
	"net/http"

	templatev1 "github.com/openshift/api/template/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// known is a request about an instance that there may be.
type known struct {
	id  string
	who *actor
	// record is nil where there is no instance.
	record *templatev1.BrokerTemplateInstance
}

// known finds the instance of a request, for whose TemplateInstance the user needs the rights.
func (b *broker) known(r *http.Request, verbs ...string) (known, error) {
	id, err := identity(r, "instance")
	if err != nil {
		return known{}, err
	}
	who, err := b.actor(r)
	if err != nil {
		return known{}, err
	}
	record, err := b.client.TemplateV1().BrokerTemplateInstances().Get(r.Context(), id, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return known{id: id, who: who}, nil
	}
	if err != nil {
		return known{}, fmt.Errorf("read the record of instance %q: %w", id, err)
	}
	for _, verb := range verbs {
		if err := b.may(r, who.user, verb, record.Spec.TemplateInstance.Namespace, id); err != nil {
			return known{}, err
		}
	}
	return known{id, who, record}, nil
}

// instance is the TemplateInstance of a record, or nil when it is gone.
func (b *broker) instance(ctx context.Context, record *templatev1.BrokerTemplateInstance) (*templatev1.TemplateInstance, error) {
	of := record.Spec.TemplateInstance
	found, err := b.client.TemplateV1().TemplateInstances(of.Namespace).Get(ctx, of.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && of.UID != "" && found.UID != of.UID {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read template instance %q: %w", of.Name, err)
	}
	return found, nil
}

// deprovision deletes an instance's TemplateInstance, which takes its objects with it. The record goes when that is done.
func (b *broker) deprovision(r *http.Request) (response, error) {
	if err := incomplete(r); err != nil {
		return response{}, err
	}
	asked, err := b.known(r, "get", "delete")
	if err != nil {
		return response{}, err
	}
	if asked.record == nil {
		return response{http.StatusGone, nothing{}}, nil
	}
	if done, err := b.forget(r.Context(), asked.record); done || err != nil {
		return response{http.StatusOK, nothing{}}, err
	}
	of := asked.record.Spec.TemplateInstance
	options := metav1.DeleteOptions{}
	if of.UID != "" {
		options.Preconditions = &metav1.Preconditions{UID: &of.UID}
	}
	err = asked.who.templates.TemplateV1().TemplateInstances(of.Namespace).Delete(r.Context(), of.Name, options)
	if err != nil && !apierrors.IsNotFound(err) {
		return response{}, err
	}
	return response{http.StatusAccepted, begun{deprovisioning}}, nil
}

// forget deletes the record of an instance if its TemplateInstance is gone; the Secret with the values goes with it.
func (b *broker) forget(ctx context.Context, record *templatev1.BrokerTemplateInstance) (done bool, err error) {
	if instance, err := b.instance(ctx, record); err != nil || instance != nil {
		return false, err
	}
	err = b.client.TemplateV1().BrokerTemplateInstances().Delete(ctx, record.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &record.UID},
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("delete the record of instance %q: %w", record.Name, err)
	}
	return true, nil
}

// lastOperation says how far the making or the deletion of an instance is.
func (b *broker) lastOperation(r *http.Request) (response, error) {
	switch operation := r.URL.Query().Get("operation"); operation {
	case provisioning:
		return b.lastProvisioning(r)
	case deprovisioning:
		return b.lastDeprovisioning(r)
	default:
		return response{}, refuse(http.StatusBadRequest, "operation is %q, and must be the one that was answered: %s or %s", operation, provisioning, deprovisioning)
	}
}

func (b *broker) lastProvisioning(r *http.Request) (response, error) {
	asked, err := b.known(r, "get")
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
	return response{http.StatusOK, progress(instance)}, nil
}

// progress is how far an instance is, which is nil when it was deleted.
func progress(instance *templatev1.TemplateInstance) operationState {
	if instance == nil {
		return operationState{failed, "the template instance was deleted"}
	}
	if _, ready := holds(instance, templatev1.TemplateInstanceReady); ready {
		return operationState{State: succeeded}
	}
	if message, broken := holds(instance, templatev1.TemplateInstanceInstantiateFailure); broken {
		return operationState{failed, message}
	}
	return operationState{State: inProgress}
}

func (b *broker) lastDeprovisioning(r *http.Request) (response, error) {
	asked, err := b.known(r, "get", "delete")
	if err != nil {
		return response{}, err
	}
	done := asked.record == nil
	if !done {
		if done, err = b.forget(r.Context(), asked.record); err != nil {
			return response{}, err
		}
	}
	if !done {
		return response{http.StatusOK, operationState{State: inProgress}}, nil
	}
	return response{http.StatusOK, operationState{State: succeeded}}, nil
}

// holds tells whether an instance has a condition, and what that says.
func holds(instance *templatev1.TemplateInstance, of templatev1.TemplateInstanceConditionType) (message string, ok bool) {
	for _, condition := range instance.Status.Conditions {
		if condition.Type == of && condition.Status == corev1.ConditionTrue {
			return condition.Message, true
		}
	}
	return "", false
}
