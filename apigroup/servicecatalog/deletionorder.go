package servicecatalog

import (
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/slipway-platform/slipway/apigroup/servicecatalog/v1beta1"
)

const (
	// namespaceController is the user name of the controller that deletes the objects in a deleted
	// project.
	namespaceController = controllers + "namespace-controller"
	// keptPeriod is how long the brokers of a deleted project are kept. After that, the catalog
	// abandons instances whose broker does not respond, for example because it ran in the project.
	keptPeriod = 10 * time.Minute
)

// deletionOrder is the admission plugin that keeps the ServiceBrokers of a deleted project until
// the instances have been deleted at their brokers. It also keeps the brokers' classes, plans and
// credentials. The namespace controller repeats a rejected deletion.
type deletionOrder struct {
	*admission.Handler
	// list returns a resource's objects in a project from this server's cache.
	list       func(ctx context.Context, resource, project string) (runtime.Object, error)
	namespaces corelisters.NamespaceLister
}

var (
	_ admission.ValidationInterface                = &deletionOrder{}
	_ initializer.WantsExternalKubeInformerFactory = &deletionOrder{}
	_ admission.InitializationValidator            = &deletionOrder{}
)

func newDeletionOrder(list func(ctx context.Context, resource, project string) (runtime.Object, error)) *deletionOrder {
	return &deletionOrder{Handler: admission.NewHandler(admission.Delete), list: list}
}

// SetExternalKubeInformerFactory stores the API server's lister of namespaces.
func (d *deletionOrder) SetExternalKubeInformerFactory(f informers.SharedInformerFactory) {
	namespaces := f.Core().V1().Namespaces()
	d.namespaces = namespaces.Lister()
	d.SetReadyFunc(namespaces.Informer().HasSynced)
}

// ValidateInitialization returns an error if no lister is set.
func (d *deletionOrder) ValidateInitialization() error {
	if d.namespaces == nil {
		return errors.New("initialize " + ServiceBrokerDeletionOrder + ": no namespace lister")
	}
	return nil
}

// Validate rejects the deletion of an object that the instances in the project require.
func (d *deletionOrder) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	secret := a.GetResource().GroupResource() == corev1.Resource("secrets") && a.GetSubresource() == ""
	if a.GetUserInfo().GetName() != namespaceController || !secret && !of(a, "servicebrokers", "serviceclasses", "serviceplans") {
		return nil
	}
	// If this server's cache does not contain the project's deletion yet, the objects are kept,
	// because the cache can be older than the controller's.
	namespace, err := d.namespaces.Get(a.GetNamespace())
	if err == nil && namespace.DeletionTimestamp != nil && time.Since(namespace.DeletionTimestamp.Time) > keptPeriod {
		return nil
	}
	if secret {
		list, err := d.list(ctx, "servicebrokers", a.GetNamespace())
		if err != nil {
			return err
		}
		name := nameOf(a)
		if !slices.ContainsFunc(list.(*v1beta1.ServiceBrokerList).Items, func(b v1beta1.ServiceBroker) bool { return usesSecret(&b, name) }) {
			return nil
		}
	}
	list, err := d.list(ctx, "serviceinstances", a.GetNamespace())
	if err != nil {
		return err
	}
	for _, instance := range list.(*v1beta1.ServiceInstanceList).Items {
		if p := &instance.Spec.PlanReference; p.ServiceClassExternalName+p.ServiceClassExternalID+p.ServiceClassName != "" {
			return admission.NewForbidden(a, errors.New("service instance "+instance.Name+" must be deleted at its broker first"))
		}
	}
	return nil
}

// nameOf returns the name of the object that is deleted. A request that deletes a collection, such
// as the namespace controller's, contains no name.
func nameOf(a admission.Attributes) string {
	if object, err := meta.Accessor(a.GetOldObject()); err == nil {
		return object.GetName()
	}
	return a.GetName()
}

func usesSecret(broker *v1beta1.ServiceBroker, name string) bool {
	auth := broker.Spec.AuthInfo
	if auth == nil {
		return false
	}
	return slices.ContainsFunc([]*v1beta1.AuthConfig{auth.Basic, auth.Bearer}, func(config *v1beta1.AuthConfig) bool {
		return config != nil && config.SecretRef != nil && config.SecretRef.Name == name
	})
}
