// Package quota serves the API group quota.openshift.io. The group contains cluster quotas, which
// apply to several projects selected by labels or annotations, and a project's view of these
// quotas.
//
// Source: OpenShift Container Platform 3.11 Cluster Administration, chapter 18. The wire types are
// defined in github.com/openshift/api/quota/v1.
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

	"github.com/slipway-platform/slipway/apiserver"
)

// Rules provides Kubernetes' validation for embedded types.
type Rules interface {
	// Quota validates a quota's spec.
	Quota(*corev1.ResourceQuotaSpec, *field.Path) field.ErrorList
}

// Feature returns the quota.openshift.io API group, with the admission plugin and the counter, so
// that it can be registered with the API server. severalServers means that other API servers also
// reserve usage.
func Feature(rules Rules, severalServers bool) apiserver.Feature {
	f := &feature{}
	if severalServers {
		f.counter.settling.period = settlingPeriod
	}
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
			Name: PluginName, Before: "ResourceQuota", New: func(io.Reader) (admission.Interface, error) { return newPlugin(f), nil },
		}},
		Hooks: f.hooks,
	}
}

// feature holds the state that the plugin and the counter share. Its fields are set before the
// server accepts requests.
type feature struct {
	configuration atomic.Pointer[quota.Configuration]
	ledger        atomic.Pointer[ledger]
	counter       counter
	locks         locks
}

func (f *feature) hooks(deps apiserver.Deps) (apiserver.Hooks, error) {
	objects, err := newObjects(deps)
	if err != nil {
		return apiserver.Hooks{}, fmt.Errorf("create clients to count quota usage: %w", err)
	}
	ledger := newLedger(deps.Stores, deps.Informers.Core().V1().Namespaces().Lister())
	f.counter.projects = &projectQuotas{client: deps.Kube, quotas: deps.Informers.Core().V1().ResourceQuotas().Lister()}
	f.counter.ledger, f.counter.objects = ledger, objects.list
	f.counter.evaluators = func() []quota.Evaluator {
		if configuration := f.configuration.Load(); configuration != nil {
			return (*configuration).Evaluators()
		}
		return nil // the admission plugin is disabled, so only the numbers of objects are counted
	}
	f.ledger.Store(ledger)
	return apiserver.Hooks{PostStart: map[string]genericserver.PostStartHookFunc{
		"openshift.io-cluster-quotas": func(ctx genericserver.PostStartHookContext) error {
			go f.counter.Run(ctx)
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

// validateSelector rejects a selector that would select every project.
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
