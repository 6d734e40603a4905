package retention

import (
	"context"
	"fmt"
	"time"

	appsv1 "github.com/openshift/api/apps/v1"
	buildv1 "github.com/openshift/api/build/v1"
	imagev1 "github.com/openshift/api/image/v1"
	imageclient "github.com/openshift/client-go/image/clientset/versioned/typed/image/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/pager"
)

// Read returns the cluster's images and the references to them. It lists images before streams, and
// streams before the objects that refer to them. It therefore finds the references of objects that
// are created in the meantime.
func (k Rules) Read(ctx context.Context, images imageclient.ImageV1Interface, client dynamic.Interface, now time.Time) (s State, err error) {
	list, err := images.Images().List(ctx, metav1.ListOptions{})
	if err != nil {
		return s, err
	}
	streams, err := images.ImageStreams(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return s, err
	}
	s = State{Images: list.Items, Streams: streams.Items, References: NewReferences(), Limits: map[string]int64{}}
	if err := s.References.read(ctx, client, now.Add(-k.Younger)); err != nil || !k.OverSize {
		return s, err
	}
	return s, each(ctx, client, corev1.SchemeGroupVersion.WithResource("limitranges"), func(limit *corev1.LimitRange) {
		for _, rule := range limit.Spec.Limits {
			size, ok := rule.Max[corev1.ResourceStorage]
			if smallest, exists := s.Limits[limit.Namespace]; ok && rule.Type == imagev1.LimitTypeImage && (!exists || size.Value() < smallest) {
				s.Limits[limit.Namespace] = size.Value()
			}
		}
	})
}

// read adds the references of all objects that can refer to an image. It ignores pods that have
// terminated and were created before since.
func (r *References) read(ctx context.Context, client dynamic.Interface, since time.Time) error {
	if err := each(ctx, client, corev1.SchemeGroupVersion.WithResource("pods"), func(pod *corev1.Pod) { r.addPod(pod, since) }); err != nil {
		return err
	}
	for kind, resource := range workloads() {
		err := each(ctx, client, resource, func(w *workload) {
			owner := ownerOf(kind, &w.ObjectMeta)
			r.addTemplate(owner, w.Namespace, w.Spec.Template)
			r.addTemplate(owner, w.Namespace, w.Spec.JobTemplate.Spec.Template)
			r.addTriggers(owner, &w.ObjectMeta)
		})
		if err != nil {
			return err
		}
	}
	if err := each(ctx, client, appsv1.GroupVersion.WithResource("deploymentconfigs"), r.addDeploymentConfig); err != nil {
		return err
	}
	err := each(ctx, client, buildv1.GroupVersion.WithResource("buildconfigs"), func(config *buildv1.BuildConfig) {
		r.addBuild(ownerOf("buildconfig", &config.ObjectMeta), config.Namespace, &config.Spec.CommonSpec)
	})
	if err != nil {
		return err
	}
	return each(ctx, client, buildv1.GroupVersion.WithResource("builds"), func(build *buildv1.Build) {
		r.addBuild(ownerOf("build", &build.ObjectMeta), build.Namespace, &build.Spec.CommonSpec)
	})
}

// each reads a resource's objects in all projects, page by page, and calls use with each object.
func each[T any](ctx context.Context, client dynamic.Interface, resource schema.GroupVersionResource, use func(*T)) error {
	pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return client.Resource(resource).List(ctx, options)
	})
	return pages.EachListItem(ctx, metav1.ListOptions{}, func(item runtime.Object) error {
		object := new(T)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(item.(*unstructured.Unstructured).Object, object); err != nil {
			return fmt.Errorf("read %s: %w", resource.Resource, err)
		}
		use(object)
		return nil
	})
}
