package serviceca

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/slipway-platform/slipway/controller"
)

// bySecret is an index that maps requested secrets, as namespace/name, to services.
const bySecret = "secret"

// createInformers creates the caches. The caches for objects that request the CA bundle contain
// only metadata.
func (c *Certificates) createInformers() error {
	core := c.Deps.Informers.Core().V1()
	c.services, c.namespaces, c.secrets = core.Services().Informer(), core.Namespaces().Informer(), c.Deps.TLSSecrets
	c.injected = map[target]cache.SharedIndexInformer{}
	for _, target := range targets() {
		c.injected[target] = c.Deps.MetadataInformers.ForResource(target.resource()).Informer()
	}
	if err := c.services.AddIndexers(cache.Indexers{bySecret: secretIndex}); err != nil {
		return fmt.Errorf("index services: %w", err)
	}
	return nil
}

func (c *Certificates) controllers() []controller.Controller {
	loops := []controller.Controller{
		{
			Name: "service certificates", Workers: 2, Reconcile: c.certify,
			Watches: []controller.Watch{
				{Informer: c.services, Keys: serviceKey, Changed: secretNameChanged},
				{Informer: c.secrets, Keys: c.servicesOfSecret},
			},
		},
		{
			Name: "service CA bundle in namespaces", Workers: 2, Reconcile: c.ensureBundleMap,
			Watches: []controller.Watch{
				{Informer: c.namespaces, Keys: namespaceKey, Changed: func(_, _ any) bool { return false }},
				{Informer: c.injected[configMaps], Keys: bundleMapKey},
			},
		},
	}
	for _, target := range targets() {
		loops = append(loops, controller.Controller{
			Name: "service CA bundle in " + string(target), Workers: 1,
			Watches:   []controller.Watch{{Informer: c.injected[target], Keys: injectKey}},
			Reconcile: c.inject(target),
		})
	}
	return loops
}

func keysOf(object any, filter func(metav1.Object) bool) []controller.Key {
	metadata, ok := object.(metav1.Object)
	if !ok || !filter(metadata) {
		return nil
	}
	return []controller.Key{cache.MetaObjectToName(metadata)}
}

func serviceKey(object any) []controller.Key {
	return keysOf(object, func(metadata metav1.Object) bool {
		return annotation(metadata.GetAnnotations(), secretName) != ""
	})
}

// secretNameChanged reports whether a service now requests a different secret. It ignores changes
// that this controller makes.
func secretNameChanged(old, new any) bool {
	before, wasOne := old.(*corev1.Service)
	after, isOne := new.(*corev1.Service)
	return !wasOne || !isOne || before.UID != after.UID || annotation(before.Annotations, secretName) != annotation(after.Annotations, secretName)
}

func secretIndex(object any) (names []string, _ error) {
	service, ok := object.(*corev1.Service)
	if !ok {
		return nil, nil
	}
	if name := annotation(service.Annotations, secretName); name != "" {
		names = append(names, service.Namespace+"/"+name)
	}
	return names, nil
}

// servicesOfSecret returns the services that request a secret.
func (c *Certificates) servicesOfSecret(object any) (keys []controller.Key) {
	secret, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return nil
	}
	services, err := c.services.GetIndexer().ByIndex(bySecret, secret.Namespace+"/"+secret.Name)
	if err != nil {
		return nil
	}
	for _, service := range services {
		keys = append(keys, serviceKey(service)...)
	}
	return keys
}

func injectKey(object any) []controller.Key {
	return keysOf(object, wantsBundle)
}

func wantsBundle(metadata metav1.Object) bool {
	return annotation(metadata.GetAnnotations(), injectBundle) == "true"
}

func namespaceKey(object any) []controller.Key {
	namespace, ok := object.(*corev1.Namespace)
	if !ok {
		return nil
	}
	return []controller.Key{{Namespace: namespace.Name, Name: BundleMap}}
}

func bundleMapKey(object any) []controller.Key {
	return keysOf(object, func(metadata metav1.Object) bool { return metadata.GetName() == BundleMap })
}
