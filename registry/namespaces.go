package registry

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// namespaces caches the projects of the cluster.
type namespaces struct {
	client  metadata.Getter
	factory metadatainformer.SharedInformerFactory
	store   cache.Store
	synced  cache.InformerSynced
	// deleted receives a value after the deletion of a namespace.
	deleted chan struct{}
}

func namespaceResource() schema.GroupVersionResource {
	return corev1.SchemeGroupVersion.WithResource("namespaces")
}

func newNamespaces(config *rest.Config) (*namespaces, error) {
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect registry: %w", err)
	}
	resource := namespaceResource()
	factory := metadatainformer.NewSharedInformerFactory(client, 0)
	informer := factory.ForResource(resource).Informer()
	n := &namespaces{client.Resource(resource), factory, informer.GetStore(), informer.HasSynced, make(chan struct{}, 1)}
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: func(any) {
		select {
		case n.deleted <- struct{}{}:
		default: // there is one already
		}
	}})
	return n, err
}

// run watches the namespaces until ctx ends.
func (n *namespaces) run(ctx context.Context) {
	n.factory.Start(ctx.Done())
	<-ctx.Done()
	n.factory.Shutdown()
}

// head returns the metadata of a namespace, or nil if the cache does not have it.
func (n *namespaces) head(name string) *metav1.PartialObjectMetadata {
	object, ok, err := n.store.GetByKey(name)
	if err != nil || !ok {
		return nil
	}
	return object.(*metav1.PartialObjectMetadata)
}

// uid returns the UID of a namespace, or "" if there is none. It asks the API server if the cache
// does not have the namespace.
func (n *namespaces) uid(ctx context.Context, name string) (types.UID, error) {
	if head := n.head(name); head != nil {
		return head.UID, nil
	}
	head, err := n.client.Get(ctx, name, metav1.GetOptions{})
	if errors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read namespace %q: %w", name, err)
	}
	return head.UID, nil
}

// quota returns the quota in the annotation of a namespace, or the cluster's default.
func (n *namespaces) quota(name string, standard int64) int64 {
	head := n.head(name)
	if head == nil || head.Annotations[QuotaAnnotation] == "" {
		return standard
	}
	quota, err := ParseQuota(head.Annotations[QuotaAnnotation])
	if err != nil { // it says nothing
		return standard
	}
	return quota
}
