package metrics

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"github.com/slipway-platform/slipway/apiserver"
)

// pods serves the pods resource, which contains the CPU and memory usage of pods.
type pods struct {
	apiserver.Unstored[*v1beta1.PodMetrics]
	rest.TableConvertor
	usage  *Usage
	lister corelisters.PodLister
}

var (
	_ rest.Getter               = &pods{}
	_ rest.Lister               = &pods{}
	_ rest.Scoper               = &pods{}
	_ rest.SingularNameProvider = &pods{}
)

func newPods(deps apiserver.Deps, usage *Usage) *pods {
	type pod = *v1beta1.PodMetrics
	return &pods{
		Unstored:       apiserver.Unstored[pod]{Singular: "pod", Namespaced: true},
		TableConvertor: apiserver.Table(columns(sum, func(p pod) metav1.Duration { return p.Window })),
		usage:          usage, lister: deps.Informers.Core().V1().Pods().Lister(),
	}
}

// sum returns the total usage of a pod's containers.
func sum(pod *v1beta1.PodMetrics) corev1.ResourceList {
	total := corev1.ResourceList{}
	for _, container := range pod.Containers {
		for name, quantity := range container.Usage {
			value := total[name]
			value.Add(quantity)
			total[name] = value
		}
	}
	return total
}

// NewList creates an empty list.
func (p *pods) NewList() runtime.Object { return &v1beta1.PodMetricsList{} }

// Get returns a pod's usage. It returns a not-found error until the pod has two readings.
func (p *pods) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	pod, err := p.lister.Pods(request.NamespaceValue(ctx)).Get(name)
	if err != nil {
		return nil, err
	}
	list, err := p.read([]*corev1.Pod{pod})
	if err != nil {
		return nil, err
	}
	if len(list.Items) == 0 {
		return nil, apierrors.NewNotFound(v1beta1.Resource("pods"), name)
	}
	return &list.Items[0], nil
}

// List returns the usage of the pods that the options select.
func (p *pods) List(ctx context.Context, options *internalversion.ListOptions) (runtime.Object, error) {
	list, err := p.lister.Pods(request.NamespaceValue(ctx)).List(labelSelector(options))
	if err != nil {
		return nil, err
	}
	return p.read(selected(list, options))
}

func (p *pods) read(list []*corev1.Pod) (*v1beta1.PodMetricsList, error) {
	metadata := make([]*metav1.PartialObjectMetadata, len(list))
	for i, pod := range list {
		metadata[i] = &metav1.PartialObjectMetadata{ObjectMeta: pod.ObjectMeta}
	}
	usage, err := p.usage.storage.GetPodMetrics(metadata...)
	if err != nil {
		return nil, err
	}
	converted := &v1beta1.PodMetricsList{Items: make([]v1beta1.PodMetrics, len(usage))}
	for i := range usage {
		if err := v1beta1.Convert_metrics_PodMetrics_To_v1beta1_PodMetrics(&usage[i], &converted.Items[i], nil); err != nil {
			return nil, err
		}
	}
	return converted, nil
}
