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

// bySecret is the index of services by the secret that they ask for, as namespace/name.
const bySecret = "secret"

// watch makes the caches. They hold metadata alone, and of that what is needed.
func (c *Certificates) watch(client metadata.Interface) error {
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
	if err := c.services.AddIndexers(cache.Indexers{bySecret: secretsOf}); err != nil {
		return fmt.Errorf("index services: %w", err)
	}
	for _, informer := range c.informers() {
		if err := informer.SetTransform(lean); err != nil {
			return fmt.Errorf("watch for certificates of services: %w", err)
		}
	}
	return nil
}

func (c *Certificates) informers() []cache.SharedIndexInformer {
	all := []cache.SharedIndexInformer{c.services, c.secrets, c.namespaces}
	for _, informer := range c.injected {
		all = append(all, informer)
	}
	return all
}

// lean drops what is large and not needed.
func lean(object any) (any, error) {
	if found, ok := object.(*metav1.PartialObjectMetadata); ok {
		found.ManagedFields, found.Labels, found.OwnerReferences = nil, nil, nil
		delete(found.Annotations, corev1.LastAppliedConfigAnnotation)
	}
	return object, nil
}

func (c *Certificates) loops() []controller.Loop {
	loops := []controller.Loop{
		{
			Name: "service certificates", Workers: 2, Reconcile: c.certify,
			Watches: []controller.Watch{
				{Informer: c.services, Keys: asking, Changed: asksOtherwise},
				{Informer: c.secrets, Keys: c.askers},
			},
		},
		{
			Name: "authority of services in namespaces", Workers: 2, Reconcile: c.publish,
			Watches: []controller.Watch{
				{Informer: c.namespaces, Keys: published, Changed: func(_, _ any) bool { return false }},
				{Informer: c.injected[configMaps], Keys: onlyPublished},
			},
		},
	}
	for _, target := range targets() {
		loops = append(loops, controller.Loop{
			Name: "authority of services in " + string(target), Workers: 1,
			Watches:   []controller.Watch{{Informer: c.injected[target], Keys: wanting}},
			Reconcile: c.injector(target),
		})
	}
	return loops
}

func keysOf(object any, when func(*metav1.PartialObjectMetadata) bool) []controller.Key {
	found, ok := object.(*metav1.PartialObjectMetadata)
	if !ok || !when(found) {
		return nil
	}
	return []controller.Key{{Namespace: found.Namespace, Name: found.Name}}
}

func asking(object any) []controller.Key {
	return keysOf(object, func(found *metav1.PartialObjectMetadata) bool { return annotation(found.Annotations, secretName) != "" })
}

// asksOtherwise tells whether a service asks for another secret than before. What is written into its annotations here changes nothing.
func asksOtherwise(old, new any) bool {
	before, wasOne := old.(*metav1.PartialObjectMetadata)
	after, isOne := new.(*metav1.PartialObjectMetadata)
	return !wasOne || !isOne || before.UID != after.UID || annotation(before.Annotations, secretName) != annotation(after.Annotations, secretName)
}

func secretsOf(object any) (names []string, _ error) {
	found, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return nil, nil
	}
	if name := annotation(found.Annotations, secretName); name != "" {
		names = append(names, found.Namespace+"/"+name)
	}
	return names, nil
}

// askers are the services that ask for a secret.
func (c *Certificates) askers(object any) (keys []controller.Key) {
	secret, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return nil
	}
	services, err := c.services.GetIndexer().ByIndex(bySecret, secret.Namespace+"/"+secret.Name)
	if err != nil {
		return nil
	}
	for _, service := range services {
		keys = append(keys, asking(service)...)
	}
	return keys
}

func wanting(object any) []controller.Key {
	return keysOf(object, wants)
}

func wants(found *metav1.PartialObjectMetadata) bool {
	return annotation(found.Annotations, injectBundle) == "true"
}

func published(object any) []controller.Key {
	found, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return nil
	}
	return []controller.Key{{Namespace: found.Name, Name: BundleMap}}
}

func onlyPublished(object any) []controller.Key {
	return keysOf(object, func(found *metav1.PartialObjectMetadata) bool { return found.Name == BundleMap })
}
