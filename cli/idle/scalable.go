package idle

import (
	"context"
	"slices"

	appsv1 "github.com/openshift/api/apps/v1"
	kubeappsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-platform/slipway/internal/idling"
)

// scalable is a pod controller and its replica count.
type scalable struct {
	idling.Target
	resource schema.GroupVersionResource
}

// kinds maps each scalable kind of controller to its resource.
var kinds = map[schema.GroupKind]schema.GroupVersionResource{
	{Kind: "ReplicationController"}:                     corev1.SchemeGroupVersion.WithResource("replicationcontrollers"),
	{Group: kubeappsv1.GroupName, Kind: "ReplicaSet"}:   kubeappsv1.SchemeGroupVersion.WithResource("replicasets"),
	{Group: kubeappsv1.GroupName, Kind: "StatefulSet"}:  kubeappsv1.SchemeGroupVersion.WithResource("statefulsets"),
	{Group: kubeappsv1.GroupName, Kind: "Deployment"}:   kubeappsv1.SchemeGroupVersion.WithResource("deployments"),
	{Group: appsv1.GroupName, Kind: "DeploymentConfig"}: appsv1.GroupVersion.WithResource("deploymentconfigs"),
}

// scalables returns the outermost controllers of the pods, each only once. It omits controllers
// with zero replicas.
func (o *command) scalables(ctx context.Context, namespace string, pods []corev1.Pod) (all []scalable, err error) {
	for _, pod := range pods {
		controller, err := o.controller(ctx, namespace, metav1.GetControllerOf(&pod))
		if err != nil {
			return nil, err
		}
		if controller != nil && controller.Replicas > 0 && !slices.Contains(all, *controller) {
			all = append(all, *controller)
		}
	}
	return all, nil
}

// controller returns the outermost scalable controller in a chain of owners that starts at a pod's
// owner. It returns nil if none of the owners is scalable.
func (o *command) controller(ctx context.Context, namespace string, owner *metav1.OwnerReference) (outermost *scalable, err error) {
	for owner != nil {
		version, err := schema.ParseGroupVersion(owner.APIVersion)
		if err != nil {
			return nil, err
		}
		resource, ok := kinds[schema.GroupKind{Group: version.Group, Kind: owner.Kind}]
		if !ok {
			return outermost, nil
		}
		object, err := o.client.Resource(resource).Namespace(namespace).Get(ctx, owner.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return outermost, nil
		}
		if err != nil {
			return nil, err
		}
		// The replica count is 0 if the field is not set.
		replicas, _, _ := unstructured.NestedInt64(object.Object, "spec", "replicas")
		outermost = &scalable{idling.Target{Kind: owner.Kind, Group: version.Group, Name: owner.Name, Replicas: int32(replicas)}, resource}
		owner = metav1.GetControllerOf(object)
	}
	return outermost, nil
}
