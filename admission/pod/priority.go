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

// systemPriority is the prefix of Kubernetes' system priority classes. No other class may have this
// prefix.
const systemPriority = "system-"

// priority is the plugin SystemPriority: only pods in namespaces of the platform, or in a namespace
// with a ResourceQuota that covers the class, may have a system priority class. Such pods preempt
// the pods of all other users.
type priority struct {
	*admission.Handler
	quotas corelisters.ResourceQuotaLister
}

var _ admission.ValidationInterface = &priority{}

func newPriority() *priority { return &priority{Handler: admission.NewHandler(admission.Create)} }

// SetExternalKubeInformerFactory stores the lister of quotas.
func (p *priority) SetExternalKubeInformerFactory(factory informers.SharedInformerFactory) {
	p.quotas = factory.Core().V1().ResourceQuotas().Lister()
	p.SetReadyFunc(factory.Core().V1().ResourceQuotas().Informer().HasSynced)
}

// ValidateInitialization fails without the lister.
func (p *priority) ValidateInitialization() error {
	if p.quotas == nil {
		return fmt.Errorf("initialize %s: no quotas", SystemPriority)
	}
	return nil
}

// Validate rejects a system priority class outside the platform's namespaces. It also checks mirror
// pods: the node's administrator chooses their namespaces.
func (p *priority) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	pod, ok := a.GetObject().(*corev1.Pod)
	if !ok || a.GetSubresource() != "" || !strings.HasPrefix(pod.Spec.PriorityClassName, systemPriority) || platformNamespace(a.GetNamespace()) {
		return nil
	}
	if !p.WaitForReady() {
		return admission.NewForbidden(a, fmt.Errorf("the cache of quotas is not ready; try again"))
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

// platformNamespace reports whether a name is reserved: users cannot request a project with this
// name.
func platformNamespace(name string) bool {
	return name == "default" || name == "openshift" || strings.HasPrefix(name, "openshift-") || strings.HasPrefix(name, "kube-")
}

// grants reports whether a quota covers pods of a priority class.
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
