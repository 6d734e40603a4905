package metrics

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/slipway-platform/slipway/apiserver"
)

// columns returns the columns that follow the name column in metrics-server's tables.
func columns[T apiserver.Object](usage func(T) corev1.ResourceList, window func(T) metav1.Duration) []apiserver.Column[T] {
	quantity := func(name corev1.ResourceName) func(T) any {
		return func(object T) any {
			value := usage(object)[name]
			return value.String()
		}
	}
	return []apiserver.Column[T]{
		{Name: "CPU", Description: "CPU cores in use, on average over the window", Value: quantity(corev1.ResourceCPU)},
		{Name: "Memory", Description: "Memory in use, without caches that the kernel can drop", Value: quantity(corev1.ResourceMemory)},
		{Name: "Window", Description: "Time between the two readings", Value: func(object T) any { return window(object).Duration.String() }},
	}
}

func labelSelector(options *internalversion.ListOptions) labels.Selector {
	if options == nil || options.LabelSelector == nil {
		return labels.Everything()
	}
	return options.LabelSelector
}

// selected returns the objects that match the field selector in options, sorted by namespace and
// name.
func selected[T metav1.Object](list []T, options *internalversion.ListOptions) []T {
	if options != nil && options.FieldSelector != nil {
		list = slices.DeleteFunc(slices.Clone(list), func(object T) bool {
			return !options.FieldSelector.Matches(fields.Set{"metadata.name": object.GetName(), "metadata.namespace": object.GetNamespace()})
		})
	}
	slices.SortFunc(list, func(a, b T) int {
		if order := strings.Compare(a.GetNamespace(), b.GetNamespace()); order != 0 {
			return order
		}
		return strings.Compare(a.GetName(), b.GetName())
	})
	return list
}
