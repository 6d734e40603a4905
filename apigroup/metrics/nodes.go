package metrics

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"github.com/slipway-platform/slipway/apiserver"
)

// nodes serves the nodes resource, which contains the CPU and memory usage of nodes.
type nodes struct {
	apiserver.Unstored[*v1beta1.NodeMetrics]
	rest.TableConvertor
	usage  *Usage
	lister corelisters.NodeLister
}

var (
	_ rest.Getter               = &nodes{}
	_ rest.Lister               = &nodes{}
	_ rest.Scoper               = &nodes{}
	_ rest.SingularNameProvider = &nodes{}
)

func newNodes(deps apiserver.Deps, usage *Usage) *nodes {
	type node = *v1beta1.NodeMetrics
	return &nodes{
		Unstored: apiserver.Unstored[node]{Singular: "node"},
		TableConvertor: apiserver.Table(columns(
			func(n node) corev1.ResourceList { return n.Usage }, func(n node) metav1.Duration { return n.Window })),
		usage: usage, lister: deps.Informers.Core().V1().Nodes().Lister(),
	}
}

// NewList creates an empty list.
func (n *nodes) NewList() runtime.Object { return &v1beta1.NodeMetricsList{} }

// Get returns a node's usage. It returns a not-found error until the node has two readings.
func (n *nodes) Get(_ context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	node, err := n.lister.Get(name)
	if err != nil {
		return nil, err
	}
	list, err := n.read([]*corev1.Node{node})
	if err != nil {
		return nil, err
	}
	if len(list.Items) == 0 {
		return nil, apierrors.NewNotFound(v1beta1.Resource("nodes"), name)
	}
	return &list.Items[0], nil
}

// List returns the usage of the nodes that the options select.
func (n *nodes) List(_ context.Context, options *internalversion.ListOptions) (runtime.Object, error) {
	list, err := n.lister.List(labelSelector(options))
	if err != nil {
		return nil, err
	}
	return n.read(selected(list, options))
}

func (n *nodes) read(list []*corev1.Node) (*v1beta1.NodeMetricsList, error) {
	usage, err := n.usage.storage.GetNodeMetrics(list...)
	if err != nil {
		return nil, err
	}
	converted := &v1beta1.NodeMetricsList{Items: make([]v1beta1.NodeMetrics, len(usage))}
	for i := range usage {
		if err := v1beta1.Convert_metrics_NodeMetrics_To_v1beta1_NodeMetrics(&usage[i], &converted.Items[i], nil); err != nil {
			return nil, err
		}
	}
	return converted, nil
}
