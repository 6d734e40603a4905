package serviceca

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"

	"github.com/slipway-platform/slipway/controller"
)

// bySecret is the index of services by their requested secret, as namespace/name.
const bySecret = "secret"

// makeInformers creates the caches. They contain only the required metadata.
func (c *Certificates) makeInformers(client metadata.Interface) error {
	informer := func(resource schema.GroupVersionResource, tweak metadatainformer.TweakListOptionsFunc) cache.SharedIndexInformer {
		return metadatainformer.NewFilteredMetadataInformer(client, resource, metav1.NamespaceAll, 0, cache.Indexers{}, tweak).Informer()
	}
	core := corev1.SchemeGroupVersion
	c.services = informer(core.WithResource("services"), nil)
	c.namespaces = informer(core.WithResource("namespaces"), nil)
	c.secrets = informer(core.WithResource("secrets"), func(options *metav1.ListOptions) {
		options.FieldSelector = fields.OneTermEqualSelector("type", string(corev1.SecretTypeTLS)).String()
	})
	c.injected = map[target]cache.SharedIndexInformer{}
	for _, target := range targets() {
		c.injected[target] = informer(target.resource(), nil)
	}
	if err := c.services.AddIndexers(cache.Indexers{bySecret: secretIndex}); err != nil {
		return fmt.Errorf("index services: %w", err)
	}
	for _, informer := range c.informers() {
		if err := informer.SetTransform(trim); err != nil {
			return fmt.Errorf("watch objects for service certificates: %w", err)
		}
	}
	return nil
}

func (c *Certificates) informers() []cache.SharedIndexInformer {
	informers := []cache.SharedIndexInformer{c.services, c.secrets, c.namespaces}
	for _, informer := range c.injected {
		informers = append(informers, informer)
	}
	return informers
}

// trim removes large metadata that is not used.
func trim(object any) (any, error) {
	if metadata, ok := object.(*metav1.PartialObjectMetadata); ok {
		metadata.ManagedFields, metadata.Labels, metadata.OwnerReferences = nil, nil, nil
		delete(metadata.Annotations, corev1.LastAppliedConfigAnnotation)
	}
	return object, nil
}

func (c *Certificates) loops() []controller.Loop {
	loops := []controller.Loop{
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
		loops = append(loops, controller.Loop{
			Name: "service CA bundle in " + string(target), Workers: 1,
			Watches:   []controller.Watch{{Informer: c.injected[target], Keys: injectKey}},
			Reconcile: c.inject(target),
		})
	}
	return loops
}

func keysOf(object any, filter func(*metav1.PartialObjectMetadata) bool) []controller.Key {
	metadata, ok := object.(*metav1.PartialObjectMetadata)
	if !ok || !filter(metadata) {
		return nil
	}
	return []controller.Key{{Namespace: metadata.Namespace, Name: metadata.Name}}
}

func serviceKey(object any) []controller.Key {
	return keysOf(object, func(metadata *metav1.PartialObjectMetadata) bool {
		return annotation(metadata.Annotations, secretName) != ""
	})
}

// secretNameChanged reports whether a service requests another secret than before. It ignores
// changes by this controller.
func secretNameChanged(old, new any) bool {
	before, wasOne := old.(*metav1.PartialObjectMetadata)
	after, isOne := new.(*metav1.PartialObjectMetadata)
	return !wasOne || !isOne || before.UID != after.UID || annotation(before.Annotations, secretName) != annotation(after.Annotations, secretName)
}

func secretIndex(object any) (names []string, _ error) {
	metadata, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return nil, nil
	}
	if name := annotation(metadata.Annotations, secretName); name != "" {
		names = append(names, metadata.Namespace+"/"+name)
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

func wantsBundle(metadata *metav1.PartialObjectMetadata) bool {
	return annotation(metadata.Annotations, injectBundle) == "true"
}

func namespaceKey(object any) []controller.Key {
	metadata, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return nil
	}
	return []controller.Key{{Namespace: metadata.Name, Name: BundleMap}}
}

func bundleMapKey(object any) []controller.Key {
	return keysOf(object, func(metadata *metav1.PartialObjectMetadata) bool { return metadata.Name == BundleMap })
}
