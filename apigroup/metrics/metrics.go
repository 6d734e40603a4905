// Package metrics serves the API group metrics.k8s.io: the CPU and memory usage of nodes and pods,
// which `oc adm top` and HorizontalPodAutoscalers read. It keeps the latest two readings in memory.
//
// Source: OpenShift Container Platform 3.11 Cluster Administration, sections 2.1.4 and 7.1.2. The
// usage is computed by the storage package of metrics-server, which also serves this group
// upstream.
package metrics

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/metrics/pkg/apis/metrics/v1beta1"
	"sigs.k8s.io/metrics-server/pkg/storage"

	"github.com/slipway-platform/slipway/apiserver"
)

// interval is the time between two readings of a node.
const interval = 15 * time.Second

// Usage stores the latest readings of all nodes.
type Usage struct{ storage storage.Storage }

// NewUsage returns an empty Usage.
func NewUsage() *Usage { return &Usage{storage.NewStorage(interval)} }

// Feature returns the API group metrics.k8s.io, which serves the content of usage.
func Feature(usage *Usage) apiserver.Feature {
	return apiserver.Feature{Groups: []apiserver.Group{{
		GroupVersion: v1beta1.SchemeGroupVersion,
		Install: func(scheme *runtime.Scheme) error {
			scheme.AddKnownTypes(v1beta1.SchemeGroupVersion,
				&v1beta1.NodeMetrics{}, &v1beta1.NodeMetricsList{}, &v1beta1.PodMetrics{}, &v1beta1.PodMetricsList{})
			return nil
		},
		Resources: []apiserver.Served{
			apiserver.Virtual{Plural: "nodes", New: func(deps apiserver.Deps) (rest.Storage, error) { return newNodes(deps, usage), nil }},
			apiserver.Virtual{Plural: "pods", New: func(deps apiserver.Deps) (rest.Storage, error) { return newPods(deps, usage), nil }},
		},
	}}}
}
