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

// reserved is a plugin that restricts a pod property, because pods with the property affect all
// other users' pods. Only pods in platform namespaces, or in a namespace with a ResourceQuota for
// such pods, are allowed to have the property.
type reserved struct {
	*admission.Handler
	name string
	// find returns the property of a pod in a namespace, or nil if the pod does not have it.
	find   func(pod *corev1.Pod, namespace string) *property
	quotas corelisters.ResourceQuotaLister
}

// property is a pod property. scope is the scope of the ResourceQuotas that apply to pods with the
// property.
type property struct {
	scope corev1.ResourceQuotaScope
	// value is the value that a quota's scope selector must contain, if the scope has values.
	value string
	at    *field.Path
	text  string
}

var _ admission.ValidationInterface = &reserved{}

func newReserved(name string, find func(*corev1.Pod, string) *property) *reserved {
	return &reserved{Handler: admission.NewHandler(admission.Create), name: name, find: find}
}

// newPriority returns the SystemPriority plugin, which restricts the system priority classes,
// because pods of these classes preempt all other users' pods.
func newPriority() *reserved {
	return newReserved(SystemPriority, func(pod *corev1.Pod, _ string) *property {
		class := pod.Spec.PriorityClassName
		if !strings.HasPrefix(class, systemPriority) {
			return nil
		}
		return &property{corev1.ResourceQuotaScopePriorityClass, class, field.NewPath("spec", "priorityClassName"),
			class + " is for namespaces of the platform; use another priority class"}
	})
}

// systemPriority is the name prefix of Kubernetes' system priority classes. No other class is
// allowed to have this prefix.
const systemPriority = "system-"

// SetExternalKubeInformerFactory stores the quota lister.
func (p *reserved) SetExternalKubeInformerFactory(factory informers.SharedInformerFactory) {
	p.quotas = factory.Core().V1().ResourceQuotas().Lister()
	p.SetReadyFunc(factory.Core().V1().ResourceQuotas().Informer().HasSynced)
}

// ValidateInitialization returns an error if there is no lister.
func (p *reserved) ValidateInitialization() error {
	if p.quotas == nil {
		return fmt.Errorf("initialize %s: no quota lister", p.name)
	}
	return nil
}

// Validate rejects pods that have the property outside the platform's namespaces. It also checks
// mirror pods, because a node's administrator chooses their namespaces.
func (p *reserved) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetResource().GroupResource() != corev1.Resource("pods") || a.GetSubresource() != "" || platformNamespace(a.GetNamespace()) {
		return nil
	}
	pod, ok := a.GetObject().(*corev1.Pod)
	if !ok {
		return nil
	}
	prop := p.find(pod, a.GetNamespace())
	if prop == nil {
		return nil
	}
	if !p.WaitForReady() {
		return admission.NewForbidden(a, fmt.Errorf("the quota cache is not ready; try again"))
	}
	quotas, err := p.quotas.ResourceQuotas(a.GetNamespace()).List(labels.Everything())
	if err != nil {
		return admission.NewForbidden(a, fmt.Errorf("list quotas: %w", err))
	}
	if slices.ContainsFunc(quotas, prop.coveredBy) {
		return nil
	}
	return admission.NewForbidden(a, field.Forbidden(prop.at, fmt.Sprintf(
		"%s, or ask the cluster's administrator for a quota with the scope %s in the project", prop.text, prop.scope)))
}

// platformNamespace reports whether a namespace name is reserved. Users cannot request a project
// with a reserved name.
func platformNamespace(name string) bool {
	return name == "default" || name == "openshift" || strings.HasPrefix(name, "openshift-") || strings.HasPrefix(name, "kube-")
}

// coveredBy reports whether a quota applies to pods with the property.
func (p *property) coveredBy(quota *corev1.ResourceQuota) bool {
	if slices.Contains(quota.Spec.Scopes, p.scope) {
		return true
	}
	if quota.Spec.ScopeSelector == nil {
		return false
	}
	return slices.ContainsFunc(quota.Spec.ScopeSelector.MatchExpressions, func(r corev1.ScopedResourceSelectorRequirement) bool {
		switch {
		case r.ScopeName != p.scope:
			return false
		case r.Operator == corev1.ScopeSelectorOpExists:
			return true
		}
		return r.Operator == corev1.ScopeSelectorOpIn && slices.Contains(r.Values, p.value)
	})
}
