package status

import (
	"cmp"
	"context"
	"slices"

	appsv1 "github.com/openshift/api/apps/v1"
	buildv1 "github.com/openshift/api/build/v1"
	imagev1 "github.com/openshift/api/image/v1"
	routev1 "github.com/openshift/api/route/v1"
	"golang.org/x/sync/errgroup"
	kubeappsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/slipway-platform/slipway/cli/objects"
)

// State contains the objects in one or all projects.
type State struct {
	Services     []corev1.Service
	Pods         []corev1.Pod
	Secrets      []metav1.PartialObjectMetadata
	Controllers  []corev1.ReplicationController
	Configs      []appsv1.DeploymentConfig
	Deployments  []kubeappsv1.Deployment
	ReplicaSets  []kubeappsv1.ReplicaSet
	StatefulSets []kubeappsv1.StatefulSet
	DaemonSets   []kubeappsv1.DaemonSet
	BuildConfigs []buildv1.BuildConfig
	Builds       []buildv1.Build
	Streams      []imagev1.ImageStream
	Routes       []routev1.Route
	Scalers      []autoscalingv2.HorizontalPodAutoscaler

	// secretsKnown means that the user is allowed to list secrets, so that Secrets is complete.
	secretsKnown bool
}

// Load reads the objects in a project, or in all projects if namespace is empty. It skips kinds
// that the user is not allowed to list, and kinds that the server does not support.
func Load(ctx context.Context, client dynamic.Interface, namespace string) (*State, error) {
	s := &State{}
	work, ctx := errgroup.WithContext(ctx)
	load(work, ctx, client, namespace, corev1.SchemeGroupVersion.WithResource("services"), &s.Services)
	load(work, ctx, client, namespace, corev1.SchemeGroupVersion.WithResource("pods"), &s.Pods)
	load(work, ctx, client, namespace, corev1.SchemeGroupVersion.WithResource("replicationcontrollers"), &s.Controllers)
	load(work, ctx, client, namespace, appsv1.GroupVersion.WithResource("deploymentconfigs"), &s.Configs)
	load(work, ctx, client, namespace, kubeappsv1.SchemeGroupVersion.WithResource("deployments"), &s.Deployments)
	load(work, ctx, client, namespace, kubeappsv1.SchemeGroupVersion.WithResource("replicasets"), &s.ReplicaSets)
	load(work, ctx, client, namespace, kubeappsv1.SchemeGroupVersion.WithResource("statefulsets"), &s.StatefulSets)
	load(work, ctx, client, namespace, kubeappsv1.SchemeGroupVersion.WithResource("daemonsets"), &s.DaemonSets)
	load(work, ctx, client, namespace, buildv1.GroupVersion.WithResource("buildconfigs"), &s.BuildConfigs)
	load(work, ctx, client, namespace, buildv1.GroupVersion.WithResource("builds"), &s.Builds)
	load(work, ctx, client, namespace, imagev1.GroupVersion.WithResource("imagestreams"), &s.Streams)
	load(work, ctx, client, namespace, routev1.GroupVersion.WithResource("routes"), &s.Routes)
	load(work, ctx, client, namespace, autoscalingv2.SchemeGroupVersion.WithResource("horizontalpodautoscalers"), &s.Scalers)
	work.Go(func() (err error) {
		s.Secrets, err = objects.List[metav1.PartialObjectMetadata](ctx, client, corev1.SchemeGroupVersion.WithResource("secrets"), namespace, metav1.ListOptions{})
		s.secretsKnown = err == nil
		return ignoreUnlistable(err)
	})
	if err := work.Wait(); err != nil {
		return nil, err
	}
	slices.SortStableFunc(s.Builds, func(a, b buildv1.Build) int { return b.CreationTimestamp.Compare(a.CreationTimestamp.Time) })
	return s, nil
}

func load[T any](work *errgroup.Group, ctx context.Context, client dynamic.Interface, namespace string, resource schema.GroupVersionResource, into *[]T) {
	work.Go(func() (err error) {
		*into, err = objects.List[T](ctx, client, resource, namespace, metav1.ListOptions{})
		return ignoreUnlistable(err)
	})
}

// ignoreUnlistable returns nil if err means that the user is not allowed to list a kind, or that
// the server does not support the kind.
func ignoreUnlistable(err error) error {
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// selects reports whether a service selects a pod with the given namespace and labels.
func selects(service corev1.Service, namespace string, podLabels map[string]string) bool {
	return len(service.Spec.Selector) > 0 && service.Namespace == namespace && labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(podLabels))
}

// owned reports whether a controller owns an object.
func owned(object metav1.Object) bool { return metav1.GetControllerOf(object) != nil }

// deploymentsOf returns a deployment config's replication controllers, latest first.
func (s *State) deploymentsOf(config appsv1.DeploymentConfig) (all []corev1.ReplicationController) {
	for _, controller := range s.Controllers {
		if controller.Namespace == config.Namespace && controller.Annotations[appsv1.DeploymentConfigAnnotation] == config.Name {
			all = append(all, controller)
		}
	}
	slices.SortFunc(all, func(a, b corev1.ReplicationController) int { return int(versionOf(b) - versionOf(a)) })
	return all
}

// podsOf returns the pods of a controller.
func (s *State) podsOf(owner metav1.Object) (all []corev1.Pod) {
	for _, pod := range s.Pods {
		if metav1.IsControlledBy(&pod, owner) {
			all = append(all, pod)
		}
	}
	return all
}

// buildsOf returns a build config's builds, latest first.
func (s *State) buildsOf(config buildv1.BuildConfig) (all []buildv1.Build) {
	for _, build := range s.Builds {
		if build.Namespace == config.Namespace && build.Labels[buildv1.BuildConfigLabel] == config.Name {
			all = append(all, build)
		}
	}
	return all
}

// buildersOf returns the build configs that push to a tag. If the tag specifies no namespace, it is
// in the given namespace.
func (s *State) buildersOf(namespace string, tag corev1.ObjectReference) (all []buildv1.BuildConfig) {
	for _, config := range s.BuildConfigs {
		to := config.Spec.Output.To
		if to != nil && to.Kind == tag.Kind && tagName(to.Name) == tagName(tag.Name) && cmp.Or(to.Namespace, config.Namespace) == cmp.Or(tag.Namespace, namespace) {
			all = append(all, config)
		}
	}
	return all
}
