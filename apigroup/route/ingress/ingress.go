// Package ingress implements Ingress objects with routes. A controller creates a Route for each
// host and path of an Ingress. The Ingress owns its Routes. The controller updates a Route when the
// Ingress, its services or its secrets change, and writes the routers' addresses to the Ingress
// status.
//
// Source: OpenShift 3.11 Cluster Administration, 8.2. Fields that already exist in OpenShift 3.11's
// Ingress are translated in the same way as in OpenShift 3.11.
package ingress

import (
	"context"
	"fmt"

	routev1 "github.com/openshift/api/route/v1"
	routeclient "github.com/openshift/client-go/route/clientset/versioned"
	routeinformers "github.com/openshift/client-go/route/informers/externalversions"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"github.com/slipway-platform/slipway/controller"
)

// ClassController is the controller name in the router's IngressClasses. The router serves Ingress
// objects of these classes, and Ingress objects without a class.
const ClassController = "openshift.io/ingress-to-route"

// Controller is the component that creates routes for Ingress objects.
type Controller struct {
	// Deps provides the shared clients and caches.
	Deps *controller.Deps
	// Address is the address of routers that do not write a host name to the route status.
	Address string
	// Domain is the parent domain of the hosts that are generated for rules without a host.
	Domain string

	kube   kubernetes.Interface
	routes routeclient.Interface
	events record.EventRecorder

	ingresses, classes, services, secrets, children cache.SharedIndexInformer
}

// Name returns the component's name.
func (*Controller) Name() string { return "ingress" }

// byOwner indexes routes by the namespace and UID of their Ingress. The namespace is necessary
// because any user can set an owner from another namespace.
const byOwner = "owner"

// Run reconciles Ingress objects until ctx is done. It calls ready when its caches have synced.
func (c *Controller) Run(ctx context.Context, ready func()) error {
	c.kube = c.Deps.Kube
	var err error
	if c.routes, err = routeclient.NewForConfig(c.Deps.Config); err != nil {
		return fmt.Errorf("create client for Ingress objects: %w", err)
	}
	events, shutdown := controller.Recorder(ctx, c.kube, scheme.Scheme, "ingress-to-route-controller")
	defer shutdown()
	c.events = events

	shared, routes := c.Deps.Informers, routeinformers.NewSharedInformerFactory(c.routes, 0)
	c.ingresses, c.classes = shared.Networking().V1().Ingresses().Informer(), shared.Networking().V1().IngressClasses().Informer()
	c.services, c.children = shared.Core().V1().Services().Informer(), routes.Route().V1().Routes().Informer()
	c.secrets = c.Deps.TLSSecrets
	if err := c.children.AddIndexers(cache.Indexers{byOwner: ownersOf}); err != nil {
		return fmt.Errorf("index routes: %w", err)
	}
	c.Deps.Start()
	defer controller.Start(ctx, routes)()
	return controller.Manager{c.controller()}.Run(ctx, ready)
}

func (c *Controller) controller() controller.Controller {
	return controller.Controller{
		Name: "routes of Ingress objects", Workers: 2, Reconcile: c.reconcile,
		Watches: []controller.Watch{
			{Informer: c.ingresses},
			{Informer: c.children, Keys: ownerKeys},
			{Informer: c.services, Keys: c.naming(usesService)},
			{Informer: c.secrets, Keys: c.naming(usesSecret)},
			{Informer: c.classes, Keys: func(any) (keys []controller.Key) {
				for _, key := range c.ingresses.GetStore().ListKeys() {
					if name, err := cache.ParseObjectName(key); err == nil {
						keys = append(keys, name)
					}
				}
				return keys
			}},
		},
	}
}

// naming returns a function that maps an object to the keys of the Ingress objects that are in the
// same namespace and refer to it.
func (c *Controller) naming(refers func(*networkingv1.Ingress, string) bool) func(any) []controller.Key {
	return func(object any) (keys []controller.Key) {
		meta, ok := object.(metav1.Object)
		if !ok {
			return nil
		}
		items, err := c.ingresses.GetIndexer().ByIndex(cache.NamespaceIndex, meta.GetNamespace())
		if err != nil {
			return nil
		}
		for _, item := range items {
			if ingress := item.(*networkingv1.Ingress); refers(ingress, meta.GetName()) {
				keys = append(keys, controller.Key{Namespace: ingress.Namespace, Name: ingress.Name})
			}
		}
		return keys
	}
}

func ownedBy(namespace string, ingress types.UID) string { return namespace + "/" + string(ingress) }

func ownersOf(object any) (owners []string, _ error) {
	if route, ok := object.(*routev1.Route); ok {
		if owner := metav1.GetControllerOf(route); owner != nil && owner.Kind == "Ingress" {
			owners = append(owners, ownedBy(route.Namespace, owner.UID))
		}
	}
	return owners, nil
}

func ownerKeys(object any) []controller.Key {
	route, ok := object.(*routev1.Route)
	if !ok {
		return nil
	}
	owner := metav1.GetControllerOf(route)
	if owner == nil || owner.Kind != "Ingress" {
		return nil
	}
	return []controller.Key{{Namespace: route.Namespace, Name: owner.Name}}
}
