package quota

import (
	"context"

	quotav1 "github.com/openshift/api/quota/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/slipway-platform/slipway/apiserver"
)

// applied serves the cluster quotas that select a namespace.
type applied struct {
	apiserver.Unstored[*quotav1.AppliedClusterResourceQuota]
	rest.TableConvertor
	namespaces corelisters.NamespaceLister
	quotas     *registry.Store
}

var (
	_ rest.Getter               = &applied{}
	_ rest.Lister               = &applied{}
	_ rest.Scoper               = &applied{}
	_ rest.SingularNameProvider = &applied{}
)

func newApplied(deps apiserver.Deps) *applied {
	return &applied{
		Unstored: apiserver.Unstored[*quotav1.AppliedClusterResourceQuota]{Singular: "appliedclusterresourcequota", Namespaced: true},
		TableConvertor: apiserver.Table([]apiserver.Column[*quotav1.AppliedClusterResourceQuota]{
			{Name: "Label Selector", Description: "Labels of the projects", Value: func(q *quotav1.AppliedClusterResourceQuota) any {
				return labelText(&q.Spec.Selector)
			}},
			{Name: "Annotation Selector", Description: "Annotations of the projects", Value: func(q *quotav1.AppliedClusterResourceQuota) any {
				return annotationText(&q.Spec.Selector)
			}},
		}),
		namespaces: deps.Informers.Core().V1().Namespaces().Lister(),
		quotas:     deps.Stores[schema.GroupResource{Group: quotav1.GroupName, Resource: "clusterresourcequotas"}],
	}
}

// NewList creates an empty list.
func (a *applied) NewList() runtime.Object { return &quotav1.AppliedClusterResourceQuotaList{} }

// Get returns a quota if it selects the namespace.
func (a *applied) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	namespace, err := a.namespace(ctx)
	if err != nil {
		return nil, err
	}
	quota, err := a.quotas.Get(ctx, name, options)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, err
	}
	if err != nil || !selects(&quota.(*quotav1.ClusterResourceQuota).Spec.Selector, namespace) {
		return nil, apierrors.NewNotFound(quotav1.Resource("appliedclusterresourcequotas"), name)
	}
	return view(quota.(*quotav1.ClusterResourceQuota)), nil
}

// List returns the quotas that select the namespace.
func (a *applied) List(ctx context.Context, options *metainternalversion.ListOptions) (runtime.Object, error) {
	namespace, err := a.namespace(ctx)
	if err != nil {
		return nil, err
	}
	all, err := a.quotas.List(ctx, options)
	if err != nil {
		return nil, err
	}
	quotas := all.(*quotav1.ClusterResourceQuotaList)
	list := &quotav1.AppliedClusterResourceQuotaList{ListMeta: quotas.ListMeta}
	for i := range quotas.Items {
		if selects(&quotas.Items[i].Spec.Selector, namespace) {
			list.Items = append(list.Items, *view(&quotas.Items[i]))
		}
	}
	return list, nil
}

func (a *applied) namespace(ctx context.Context) (*corev1.Namespace, error) {
	name := request.NamespaceValue(ctx)
	if name == "" {
		return nil, apierrors.NewBadRequest("set a namespace: an AppliedClusterResourceQuota belongs to one project")
	}
	namespace, err := a.namespaces.Get(name)
	if err != nil {
		return nil, err // unwrapped: the server derives the HTTP status from the error's type
	}
	return namespace, nil
}

func view(quota *quotav1.ClusterResourceQuota) *quotav1.AppliedClusterResourceQuota {
	return &quotav1.AppliedClusterResourceQuota{ObjectMeta: quota.ObjectMeta, Spec: quota.Spec, Status: quota.Status}
}

// selects reports whether the selector matches both the labels and the annotations of a namespace.
func selects(selector *quotav1.ClusterResourceQuotaSelector, namespace *corev1.Namespace) bool {
	if selector.LabelSelector != nil {
		required, err := metav1.LabelSelectorAsSelector(selector.LabelSelector)
		if err != nil || !required.Matches(labels.Set(namespace.Labels)) {
			return false
		}
	}
	return labels.SelectorFromValidatedSet(selector.AnnotationSelector).Matches(labels.Set(namespace.Annotations))
}
