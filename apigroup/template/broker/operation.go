package broker

import (
	"context"
	"fmt"
	"net/http"

	templatev1 "github.com/openshift/api/template/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/internal/osbserver"
)

// target is the instance that a request refers to. The instance might not exist.
type target struct {
	id    string
	actor *actor
	// record is nil if the instance does not exist.
	record *templatev1.BrokerTemplateInstance
}

// target returns the instance that a request refers to. The user must be allowed to use the given
// verbs on the instance's TemplateInstance.
func (b *broker) target(r *http.Request, verbs ...string) (target, error) {
	id, err := osbserver.ID(r, "instance")
	if err != nil {
		return target{}, err
	}
	actor, err := b.actor(r)
	if err != nil {
		return target{}, err
	}
	record, err := b.client.TemplateV1().BrokerTemplateInstances().Get(r.Context(), id, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return target{id: id, actor: actor}, nil
	}
	if err != nil {
		return target{}, fmt.Errorf("read the record of instance %q: %w", id, err)
	}
	for _, verb := range verbs {
		if err := b.may(r, actor.user, verb, record.Spec.TemplateInstance.Namespace, id); err != nil {
			return target{}, err
		}
	}
	return target{id, actor, record}, nil
}

// instance returns a record's TemplateInstance, or nil if it has been deleted.
func (b *broker) instance(ctx context.Context, record *templatev1.BrokerTemplateInstance) (*templatev1.TemplateInstance, error) {
	of := record.Spec.TemplateInstance
	instance, err := b.client.TemplateV1().TemplateInstances(of.Namespace).Get(ctx, of.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && of.UID != "" && instance.UID != of.UID {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read template instance %q: %w", of.Name, err)
	}
	return instance, nil
}

// deprovision deletes an instance's TemplateInstance, which also causes the deletion of its
// objects. It then deletes the record.
func (b *broker) deprovision(r *http.Request) (osbserver.Response, error) {
	if err := osbserver.Incomplete(r); err != nil {
		return osbserver.Response{}, err
	}
	target, err := b.target(r, "get", "delete")
	if err != nil {
		return osbserver.Response{}, err
	}
	if target.record == nil {
		return osbserver.Response{Code: http.StatusGone, Body: osbserver.Empty{}}, nil
	}
	if done, err := b.forget(r.Context(), target.record); done || err != nil {
		return osbserver.Response{Code: http.StatusOK, Body: osbserver.Empty{}}, err
	}
	of := target.record.Spec.TemplateInstance
	options := metav1.DeleteOptions{}
	if of.UID != "" {
		options.Preconditions = &metav1.Preconditions{UID: &of.UID}
	}
	err = target.actor.templates.TemplateV1().TemplateInstances(of.Namespace).Delete(r.Context(), of.Name, options)
	if err != nil && !apierrors.IsNotFound(err) {
		return osbserver.Response{}, err
	}
	return osbserver.Response{Code: http.StatusAccepted, Body: operation{deprovisioning}}, nil
}

// forget deletes an instance's record if the TemplateInstance no longer exists. The Secret with the
// parameter values is deleted with the record.
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

// lastOperation returns the progress of an instance's creation or deletion.
func (b *broker) lastOperation(r *http.Request) (osbserver.Response, error) {
	switch operation := r.URL.Query().Get("operation"); operation {
	case provisioning:
		return b.lastProvisioning(r)
	case deprovisioning:
		return b.lastDeprovisioning(r)
	default:
		return osbserver.Response{}, osbserver.Refuse(http.StatusBadRequest, "operation is %q, must be the operation of the response: %s or %s",
			operation, provisioning, deprovisioning)
	}
}

func (b *broker) lastProvisioning(r *http.Request) (osbserver.Response, error) {
	target, err := b.target(r, "get")
	if err != nil {
		return osbserver.Response{}, err
	}
	var instance *templatev1.TemplateInstance
	if target.record != nil {
		if instance, err = b.instance(r.Context(), target.record); err != nil {
			return osbserver.Response{}, err
		}
	}
	return osbserver.Response{Code: http.StatusOK, Body: progress(instance)}, nil
}

// progress returns the state of an instance. instance is nil if the TemplateInstance has been
// deleted.
func progress(instance *templatev1.TemplateInstance) operationState {
	if instance == nil {
		return operationState{failed, "the template instance was deleted"}
	}
	if _, ready := hasCondition(instance, templatev1.TemplateInstanceReady); ready {
		return operationState{State: succeeded}
	}
	if message, isFailed := hasCondition(instance, templatev1.TemplateInstanceInstantiateFailure); isFailed {
		return operationState{failed, message}
	}
	return operationState{State: inProgress}
}

func (b *broker) lastDeprovisioning(r *http.Request) (osbserver.Response, error) {
	target, err := b.target(r, "get", "delete")
	if err != nil {
		return osbserver.Response{}, err
	}
	done := target.record == nil
	if !done {
		if done, err = b.forget(r.Context(), target.record); err != nil {
			return osbserver.Response{}, err
		}
	}
	if !done {
		return osbserver.Response{Code: http.StatusOK, Body: operationState{State: inProgress}}, nil
	}
	return osbserver.Response{Code: http.StatusOK, Body: operationState{State: succeeded}}, nil
}

// hasCondition reports whether an instance has a condition, and returns its message.
func hasCondition(instance *templatev1.TemplateInstance, of templatev1.TemplateInstanceConditionType) (message string, ok bool) {
	for _, condition := range instance.Status.Conditions {
		if condition.Type == of && condition.Status == corev1.ConditionTrue {
			return condition.Message, true
		}
	}
	return "", false
}
