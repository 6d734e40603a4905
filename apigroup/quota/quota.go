// Package quota serves the API group quota.openshift.io: quotas over several projects together, chosen by
// labels or annotations, and the view of them that a project's administrators have.
//
// Source: OpenShift Container Platform 3.11 Cluster Administration, chapter 18; the wire types are
// github.com/openshift/api/quota/v1's.
package quota

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"

	quotav1 "github.com/openshift/api/quota/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/apiserver/pkg/registry/rest"
	genericserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/kubernetes"

	"github.com/slipway-platform/slipway/apiserver"
)

// Rules are Kubernetes' own rules for what a quota embeds.
type Rules interface {
	// Quota gives the problems of a quota's specification.
	Quota(*corev1.ResourceQuotaSpec, *field.Path) field.ErrorList
}

// Feature is the API group as the API server serves it, with what enforces and counts.
func Feature(rules Rules) apiserver.Feature {
	f := &feature{}
	return apiserver.Feature{
		Groups: []apiserver.Group{{
			GroupVersion: quotav1.GroupVersion,
			Install:      quotav1.Install,
			Legacy:       quotav1.DeprecatedInstallWithoutGroup,
			Resources: []apiserver.Served{
				clusterQuotas(rules),
				apiserver.Virtual{Plural: "appliedclusterresourcequotas", New: func(deps apiserver.Deps) (rest.Storage, error) {
					return newApplied(deps), nil
				}},
			},
		}},
		Admission: []apiserver.Admission{{
			Name: PluginName, Before: "ResourceQuota", New: func(io.Reader) (admission.Interface, error) { return newCheck(f), nil },
		}},
		Hooks: f.hooks,
	}
}

// feature is what the plugin and the counter share. Its fields are set while the server is put together, before it answers.
type feature struct {
	known   atomic.Pointer[quota.Configuration]
	ledger  atomic.Pointer[ledger]
	counter counter
	locks   locks
}

func (f *feature) hooks(deps apiserver.Deps) (apiserver.Hooks, error) {
	counted, err := newObjects(deps.Loopback)
	if err != nil {
		return apiserver.Hooks{}, fmt.Errorf("connect to count quotas: %w", err)
	}
	ledger := newLedger(deps.Stores, deps.Informers.Core().V1().Namespaces().Lister())
	client, err := kubernetes.NewForConfig(apiserver.Unlimited(deps.Loopback))
	if err != nil {
		return apiserver.Hooks{}, fmt.Errorf("connect to write quotas: %w", err)
	}
	f.counter.projects = &projectQuotas{client: client, cached: deps.Informers.Core().V1().ResourceQuotas().Lister()}
	f.counter.ledger, f.counter.objects = ledger, counted.list
	f.counter.known = func() []quota.Evaluator {
		if known := f.known.Load(); known != nil {
			return (*known).Evaluators()
		}
		return nil // the plug-in is switched off: the numbers of objects are counted
	}
	f.ledger.Store(ledger)
	return apiserver.Hooks{PostStart: map[string]genericserver.PostStartHookFunc{
		"openshift.io-cluster-quotas": func(started genericserver.PostStartHookContext) error {
			go f.counter.Run(started)
			return nil
		},
	}}, nil
}

func clusterQuotas(rules Rules) apiserver.Served {
	return apiserver.Resource[*quotav1.ClusterResourceQuota]{
		Plural: "clusterresourcequotas", ShortNames: []string{"clusterquota"}, Status: true,
		Validate: func(_ context.Context, quota, _ *quotav1.ClusterResourceQuota) field.ErrorList {
			spec := field.NewPath("spec")
			return slices.Concat(validateSelector(&quota.Spec.Selector, spec.Child("selector")),
				rules.Quota(&quota.Spec.Quota, spec.Child("quota")))
		},
		Columns: []apiserver.Column[*quotav1.ClusterResourceQuota]{
			{Name: "Label Selector", Description: "Labels of the projects", Value: func(q *quotav1.ClusterResourceQuota) any {
				return labelText(&q.Spec.Selector)
			}},
			{Name: "Annotation Selector", Description: "Annotations of the projects", Value: func(q *quotav1.ClusterResourceQuota) any {
				return annotationText(&q.Spec.Selector)
			}},
		},
	}
}

// validateSelector refuses a selector that would select every project.
func validateSelector(selector *quotav1.ClusterResourceQuotaSelector, at *field.Path) (errs field.ErrorList) {
	if selector.LabelSelector == nil && len(selector.AnnotationSelector) == 0 {
		return field.ErrorList{field.Required(at, "must restrict the selected projects")}
	}
	if labels := selector.LabelSelector; labels != nil {
		if len(labels.MatchLabels)+len(labels.MatchExpressions) == 0 && len(selector.AnnotationSelector) == 0 {
			errs = append(errs, field.Invalid(at.Child("labels"), labels, "must restrict the selected projects"))
		}
		errs = append(errs, metavalidation.ValidateLabelSelector(labels, metavalidation.LabelSelectorValidationOptions{}, at.Child("labels"))...)
	}
	return append(errs, validation.ValidateAnnotations(selector.AnnotationSelector, at.Child("annotations"))...)
}

func labelText(selector *quotav1.ClusterResourceQuotaSelector) string {
	if selector.LabelSelector == nil {
		return "<none>"
	}
	return metav1.FormatLabelSelector(selector.LabelSelector)
}

func annotationText(selector *quotav1.ClusterResourceQuotaSelector) string {
	var pairs []string
	for key, value := range selector.AnnotationSelector {
		pairs = append(pairs, key+"="+value)
	}
	slices.Sort(pairs)
	return strings.Join(pairs, ",")
}
