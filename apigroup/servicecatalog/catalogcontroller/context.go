package catalogcontroller

import (
	"context"
	"fmt"
	"sync"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/apigroup/servicecatalog/osb"
)

// The ConfigMap that contains the cluster ID, which is sent to brokers.
const (
	clusterInfo    = "cluster-info"
	clusterInfoKey = "id"
)

// clusterID caches the cluster ID.
type clusterID struct {
	mu sync.Mutex
	id string
}

// clusterID returns the cluster ID. If the ConfigMap that contains the ID does not exist, clusterID
// creates it.
func (r *reconciler) clusterID(ctx context.Context) (string, error) {
	r.cluster.mu.Lock()
	defer r.cluster.mu.Unlock()
	if r.cluster.id != "" {
		return r.cluster.id, nil
	}
	maps := r.kube.CoreV1().ConfigMaps(metav1.NamespaceDefault)
	info, err := maps.Get(ctx, clusterInfo, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		info, err = maps.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: clusterInfo}, Data: map[string]string{clusterInfoKey: uuid.NewString()},
		}, metav1.CreateOptions{})
	}
	if err == nil && info.Data[clusterInfoKey] == "" {
		changed := info.DeepCopy()
		if changed.Data == nil {
			changed.Data = map[string]string{}
		}
		changed.Data[clusterInfoKey] = uuid.NewString()
		info, err = maps.Update(ctx, changed, metav1.UpdateOptions{})
	}
	if err != nil {
		return "", fmt.Errorf("read the ID of the cluster: %w", err)
	}
	r.cluster.id = info.Data[clusterInfoKey]
	return r.cluster.id, nil
}

// profile returns the context object of a request: the platform, cluster and namespace in the form
// that the Kubernetes profile of the API defines. It also returns the IDs that earlier API versions
// require instead.
func (r *reconciler) profile(ctx context.Context, namespace, instance string) (profile map[string]any, cluster, space string, err error) {
	if cluster, err = r.clusterID(ctx); err != nil {
		return nil, "", "", err
	}
	object, err := r.kube.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
	if err != nil {
		return nil, "", "", fmt.Errorf("read namespace: %w", err)
	}
	return map[string]any{
		"platform": osb.Platform, "clusterid": cluster, "namespace": namespace, "instance_name": instance,
	}, cluster, string(object.UID), nil
}
