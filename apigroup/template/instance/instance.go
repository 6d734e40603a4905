// Package instance contains the TemplateInstance controller. It creates the objects of an
// instance's template with the requester's permissions, and waits for the objects that must become
// ready. It deletes the objects together with the instance. It stores its state in the API, so that
// it can continue after a restart.
//
// Source: OpenShift Container Platform 3.9 Architecture, templates and the template service broker.
// The conditions, annotations and checks are the same as in OpenShift 3.11.
package instance

import (
	"context"
	"errors"
	"fmt"
	"time"

	templatev1 "github.com/openshift/api/template/v1"
	templateclient "github.com/openshift/client-go/template/clientset/versioned"
	templateinformers "github.com/openshift/client-go/template/informers/externalversions"
	templatelisters "github.com/openshift/client-go/template/listers/template/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/slipway-platform/slipway/controller"
)

// Instances is the component that reconciles TemplateInstances.
type Instances struct {
	// Deps provides the shared clients and caches.
	Deps *controller.Deps
	// Secret and an instance's UID together form the seed for generated values. Therefore, if the
	// creation of an instance is interrupted, the next attempt generates the same values.
	Secret []byte
}

// Name returns the component's name.
func (*Instances) Name() string { return "template-instances" }

// minBackoff is the backoff after the first error, which is usually a conflict with another writer.
const minBackoff = 100 * time.Millisecond

// namespaceWorkers is the number of instances that are reconciled concurrently in one project. The
// limit prevents instances with many objects, which take a long time, from delaying other projects.
const namespaceWorkers = 2

// Run reconciles instances until ctx is done. It calls ready when its cache has synced.
func (i *Instances) Run(ctx context.Context, ready func()) error {
	kube := i.Deps.Kube
	client, err := templateclient.NewForConfig(i.Deps.Config)
	if err != nil {
		return fmt.Errorf("create client for template instances: %w", err)
	}
	factory := templateinformers.NewSharedInformerFactory(client, 0)
	instances := factory.Template().V1().TemplateInstances()
	c := &reconciler{
		config: i.Deps.Config, secret: i.Secret, kube: kube, client: client, objects: i.Deps.Dynamic, instances: instances.Lister(),
		mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(kube.Discovery())),
	}
	set := controller.Manager{{
		Name: "template-instance", Watches: []controller.Watch{{Informer: instances.Informer()}}, Reconcile: c.reconcile, MinBackoff: minBackoff,
		NamespaceWorkers: namespaceWorkers,
	}}
	defer controller.Start(ctx, factory)()
	return set.Run(ctx, ready)
}

// reconciler reconciles TemplateInstances.
type reconciler struct {
	config    *rest.Config
	secret    []byte
	kube      kubernetes.Interface
	client    templateclient.Interface
	objects   dynamic.Interface
	instances templatelisters.TemplateInstanceLister
	mapper    meta.ResettableRESTMapper
}

func (l *reconciler) reconcile(ctx context.Context, key controller.Key) error {
	cached, err := l.instances.TemplateInstances(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	instance := cached.DeepCopy()
	switch {
	case instance.DeletionTimestamp != nil:
		return l.remove(ctx, instance)
	case is(instance, templatev1.TemplateInstanceReady) || is(instance, templatev1.TemplateInstanceInstantiateFailure):
		return nil
	case condition(instance, templatev1.TemplateInstanceReady) == nil:
		err = l.instantiate(ctx, instance)
	default:
		err = l.await(ctx, instance)
	}
	var final *failure
	switch {
	case err == nil:
		return nil
	case errors.As(err, &final):
		set(instance, templatev1.TemplateInstanceReady, corev1.ConditionFalse, "Failed", "See InstantiateFailure condition for error message")
		set(instance, templatev1.TemplateInstanceInstantiateFailure, corev1.ConditionTrue, "Failed", err.Error())
		return l.update(ctx, instance)
	default:
		return err
	}
}

// update writes the status and replaces instance with the stored object.
func (l *reconciler) update(ctx context.Context, instance *templatev1.TemplateInstance) error {
	existing, err := l.client.TemplateV1().TemplateInstances(instance.Namespace).UpdateStatus(ctx, instance, metav1.UpdateOptions{})
	if err != nil {
		return fmt.Errorf("update status: %w", err)
	}
	*instance = *existing
	return nil
}

func condition(instance *templatev1.TemplateInstance, of templatev1.TemplateInstanceConditionType) *templatev1.TemplateInstanceCondition {
	for i := range instance.Status.Conditions {
		if instance.Status.Conditions[i].Type == of {
			return &instance.Status.Conditions[i]
		}
	}
	return nil
}

func is(instance *templatev1.TemplateInstance, of templatev1.TemplateInstanceConditionType) bool {
	current := condition(instance, of)
	return current != nil && current.Status == corev1.ConditionTrue
}

func set(instance *templatev1.TemplateInstance, of templatev1.TemplateInstanceConditionType,
	status corev1.ConditionStatus, reason, message string) {
	current := condition(instance, of)
	if current == nil {
		instance.Status.Conditions = append(instance.Status.Conditions, templatev1.TemplateInstanceCondition{Type: of})
		current = &instance.Status.Conditions[len(instance.Status.Conditions)-1]
	}
	if current.Status != status {
		current.LastTransitionTime = metav1.Now()
	}
	current.Status, current.Reason, current.Message = status, reason, message
}
