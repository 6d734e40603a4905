package pod

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"
)

// systemPriority is how the names of Kubernetes' own priority classes begin. No other class has such a name.
const systemPriority = "system-"

// priority is the plugin SystemPriority: only pods in namespaces of the platform, and in those where the
// administrator has a quota for it, have a system priority class. Such pods evict those of all other users.
type priority struct {
	*admission.Handler
	quotas corelisters.ResourceQuotaLister
}

var _ admission.ValidationInterface = &priority{}

func newPriority() *priority { return &priority{Handler: admission.NewHandler(admission.Create)} }

// SetExternalKubeInformerFactory gives the API server's caches.
func (p *priority) SetExternalKubeInformerFactory(factory informers.SharedInformerFactory) {
	p.quotas = factory.Core().V1().ResourceQuotas().Lister()
	p.SetReadyFunc(factory.Core().V1().ResourceQuotas().Informer().HasSynced)
}

// ValidateInitialization says whether the caches were given.
func (p *priority) ValidateInitialization() error {
	if p.quotas == nil {
		return fmt.Errorf("%s was given no quotas", SystemPriority)
	}
	return nil
}

// Validate refuses a system priority class outside of the platform. It doesn't except the pods that a node mirrors from
// its files: their namespaces are the node administrator's to choose.
func (p *priority) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	pod, ok := a.GetObject().(*corev1.Pod)
	if !ok || a.GetSubresource() != "" || !strings.HasPrefix(pod.Spec.PriorityClassName, systemPriority) || platformNamespace(a.GetNamespace()) {
		return nil
	}
	if !p.WaitForReady() {
		return admission.NewForbidden(a, fmt.Errorf("quotas are not known yet; try again"))
	}
	quotas, err := p.quotas.ResourceQuotas(a.GetNamespace()).List(labels.Everything())
	if err != nil {
		return admission.NewForbidden(a, fmt.Errorf("list quotas: %w", err))
	}
	class := pod.Spec.PriorityClassName
	if slices.ContainsFunc(quotas, func(quota *corev1.ResourceQuota) bool { return grants(quota, class) }) {
		return nil
	}
	return admission.NewForbidden(a, field.Forbidden(field.NewPath("spec", "priorityClassName"), fmt.Sprintf(
		"%s is for namespaces of the platform; use another priority class, or ask the cluster's administrator for a quota with the scope PriorityClass in the project", class)))
}

// platformNamespace tells whether a namespace has a name that users cannot request.
func platformNamespace(name string) bool {
	return name == "default" || name == "openshift" || strings.HasPrefix(name, "openshift-") || strings.HasPrefix(name, "kube-")
}

// grants tells whether a quota is for pods of a priority class.
func grants(quota *corev1.ResourceQuota, class string) bool {
	if slices.Contains(quota.Spec.Scopes, corev1.ResourceQuotaScopePriorityClass) {
		return true
	}
	if quota.Spec.ScopeSelector == nil {
		return false
	}
	return slices.ContainsFunc(quota.Spec.ScopeSelector.MatchExpressions, func(r corev1.ScopedResourceSelectorRequirement) bool {
		switch {
		case r.ScopeName != corev1.ResourceQuotaScopePriorityClass:
			return false
		case r.Operator == corev1.ScopeSelectorOpExists:
			return true
		}
		return r.Operator == corev1.ScopeSelectorOpIn && slices.Contains(r.Values, class)
	})
}
