// Package ingress lets the router serve Ingress objects: a controller makes a Route for each host and path of an Ingress, which owns it, keeps it as
// the Ingress, its services and its secrets are, and writes into the status of the Ingress where it is served.
//
// Source: OpenShift 3.11 Cluster Administration, 8.2; what becomes of each field is as in OpenShift 3.11, where its Ingress has it.
package ingress

import (
	"context"
	"fmt"

	routev1 "github.com/openshift/api/route/v1"
	routeclient "github.com/openshift/client-go/route/clientset/versioned"
	routeinformers "github.com/openshift/client-go/route/informers/externalversions"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"github.com/slipway-platform/slipway/controller"
)

// ClassController is what an IngressClass names for the router to serve it. Ingress objects of no class are served too.
const ClassController = "openshift.io/ingress-to-route"

// Controller is the part that makes routes.
type Controller struct {
	// Client is a connection with every right.
	Client *rest.Config
	// Address is where routers serve that name no host of their own in the status of routes.
	Address string
	// Domain is what the hosts of rules without one stand below.
	Domain string

	kube   kubernetes.Interface
	routes routeclient.Interface
	events record.EventRecorder

	ingresses, classes, services, secrets, made cache.SharedIndexInformer
}

// Name is the part's name.
func (*Controller) Name() string { return "ingress" }

// byOwner is the index of routes by the namespace and identity of the Ingress that they were made of: anybody can write that a route has an owner elsewhere.
const byOwner = "owner"

// Run makes routes until ctx ends. It calls ready when it knows what there is.
func (c *Controller) Run(ctx context.Context, ready func()) error {
	config := rest.CopyConfig(c.Client)
	config.QPS, config.Burst = 100, 200
	objects, err := metadata.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("connect for Ingress objects: %w", err)
	}
	if c.kube, err = kubernetes.NewForConfig(config); err != nil {
		return fmt.Errorf("connect for Ingress objects: %w", err)
	}
	if c.routes, err = routeclient.NewForConfig(config); err != nil {
		return fmt.Errorf("connect for Ingress objects: %w", err)
	}
	events, shutdown := controller.Recorder(ctx, c.kube, scheme.Scheme, "ingress-to-route-controller")
	defer shutdown()
	c.events = events

	kube, routes := informers.NewSharedInformerFactory(c.kube, 0), routeinformers.NewSharedInformerFactory(c.routes, 0)
	c.ingresses, c.classes = kube.Networking().V1().Ingresses().Informer(), kube.Networking().V1().IngressClasses().Informer()
	c.services, c.made = kube.Core().V1().Services().Informer(), routes.Route().V1().Routes().Informer()
	c.secrets = metadatainformer.NewFilteredMetadataInformer(objects, corev1.SchemeGroupVersion.WithResource("secrets"), metav1.NamespaceAll, 0, cache.Indexers{}, func(options *metav1.ListOptions) {
		options.FieldSelector = fields.OneTermEqualSelector("type", string(corev1.SecretTypeTLS)).String()
	}).Informer()
	if err := c.made.AddIndexers(cache.Indexers{byOwner: ownersOf}); err != nil {
		return fmt.Errorf("index routes: %w", err)
	}
	defer controller.Start(ctx, kube, routes)()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.secrets.RunWithContext(ctx)
	}()
	defer func() { <-ended }()
	return controller.Set{c.loop()}.Run(ctx, ready)
}

func (c *Controller) loop() controller.Loop {
	return controller.Loop{
		Name: "routes of Ingress objects", Workers: 2, Reconcile: c.reconcile,
		Watches: []controller.Watch{
			{Informer: c.ingresses},
			{Informer: c.made, Keys: ownerKeys},
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

// naming are the Ingress objects of an object's namespace that name it.
func (c *Controller) naming(names func(*networkingv1.Ingress, string) bool) func(any) []controller.Key {
	return func(object any) (keys []controller.Key) {
		named, ok := object.(metav1.Object)
		if !ok {
			return nil
		}
		found, err := c.ingresses.GetIndexer().ByIndex(cache.NamespaceIndex, named.GetNamespace())
		if err != nil {
			return nil
		}
		for _, one := range found {
			if ingress := one.(*networkingv1.Ingress); names(ingress, named.GetName()) {
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
