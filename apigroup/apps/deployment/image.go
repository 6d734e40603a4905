package deployment

import (
	"context"
	"fmt"
	"slices"

	appsv1 "github.com/openshift/api/apps/v1"
	imagev1 "github.com/openshift/api/image/v1"
	appsclient "github.com/openshift/client-go/apps/clientset/versioned/typed/apps/v1"
	appslisters "github.com/openshift/client-go/apps/listers/apps/v1"
	imagelisters "github.com/openshift/client-go/image/listers/image/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/slipway-platform/slipway/apigroup/apps/rollout"
	"github.com/slipway-platform/slipway/controller"
)

// imageLoop brings the images of tags into the configurations that have ImageChange triggers for them.
type imageLoop struct {
	apps    appsclient.DeploymentConfigsGetter
	configs appslisters.DeploymentConfigLister
	streams imagelisters.ImageStreamLister
}

// byStream is the index of configurations by the image streams of their triggers.
const byStream = "stream"

func (l *imageLoop) loop(configs, streams cache.SharedIndexInformer) (controller.Loop, error) {
	err := configs.AddIndexers(cache.Indexers{byStream: func(object any) ([]string, error) {
		return rollout.Streams(object.(*appsv1.DeploymentConfig)), nil
	}})
	if err != nil {
		return controller.Loop{}, fmt.Errorf("index deployment configurations by image stream: %w", err)
	}
	waiting := func(object any) (keys []controller.Key) {
		stream, err := cache.ObjectToName(object)
		if err != nil {
			return nil
		}
		found, _ := configs.GetIndexer().ByIndex(byStream, stream.String()) // the index exists
		for _, dc := range found {
			keys = append(keys, cache.MetaObjectToName(dc.(*appsv1.DeploymentConfig)))
		}
		return keys
	}
	return controller.Loop{
		Name:      "deployment images",
		Watches:   []controller.Watch{{Informer: configs}, {Informer: streams, Keys: waiting}},
		Reconcile: l.reconcile, Retry: firstRetry,
	}, nil
}

func (l *imageLoop) reconcile(ctx context.Context, key controller.Key) error {
	found, err := l.configs.DeploymentConfigs(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if found.DeletionTimestamp != nil || found.Spec.Paused {
		return nil
	}
	dc := found.DeepCopy()
	changed := rollout.BringImages(dc, nil, func(namespace, name string) *imagev1.ImageStream {
		stream, err := l.streams.ImageStreams(namespace).Get(name)
		if err != nil { // its creation will wake the loop
			return nil
		}
		return stream
	})
	if !changed {
		return nil
	}
	if _, err := l.apps.DeploymentConfigs(key.Namespace).Update(ctx, dc, metav1.UpdateOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("bring new images: %w", err)
	}
	return nil
}

// unresolved are the containers that wait for an image.
func unresolved(template *corev1.PodTemplateSpec) (names []string) {
	for _, container := range slices.Concat(template.Spec.InitContainers, template.Spec.Containers) {
		if container.Image == "" || container.Image == " " {
			names = append(names, container.Name)
		}
	}
	return names
}
