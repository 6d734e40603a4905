package registry

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/slipway-platform/slipway/controller"
)

// namespaces reads namespaces from the cache and signals their deletion.
type namespaces struct {
	client coreclient.NamespaceInterface
	store  cache.Store
	synced cache.InformerSynced
	// deleted receives a value after a namespace is deleted.
	deleted chan struct{}
}

func newNamespaces(deps *controller.Deps) (*namespaces, error) {
	informer := deps.Informers.Core().V1().Namespaces().Informer()
	n := &namespaces{deps.Kube.CoreV1().Namespaces(), informer.GetStore(), informer.HasSynced, make(chan struct{}, 1)}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: func(any) {
		select {
		case n.deleted <- struct{}{}:
		default: // a value is already waiting
		}
	}})
	deps.Start()
	return n, err
}

// get returns a namespace, or nil if it is not in the cache.
func (n *namespaces) get(name string) *corev1.Namespace {
	object, ok, err := n.store.GetByKey(name)
	if err != nil || !ok {
		return nil
	}
	return object.(*corev1.Namespace)
}

// uid returns a namespace's UID, or "" if the namespace does not exist. If the namespace is not in
// the cache, uid requests it from the API server.
func (n *namespaces) uid(ctx context.Context, name string) (types.UID, error) {
	if namespace := n.get(name); namespace != nil {
		return namespace.UID, nil
	}
	namespace, err := n.client.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read namespace %q: %w", name, err)
	}
	return namespace.UID, nil
}

// quota returns the quota in a namespace's annotation. If the annotation is missing or invalid, it
// returns standard.
func (n *namespaces) quota(name string, standard int64) int64 {
	namespace := n.get(name)
	if namespace == nil || namespace.Annotations[QuotaAnnotation] == "" {
		return standard
	}
	quota, err := ParseQuota(namespace.Annotations[QuotaAnnotation])
	if err != nil { // the annotation is invalid
		return standard
	}
	return quota
}
