package pod

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// newAffinity returns the CrossNamespacePodAffinity plugin, which restricts the affinity and
// anti-affinity terms that select pods of other projects. If a running pod's anti-affinity selects
// all other pods, the scheduler cannot place any of them on that pod's node. In addition, the node
// that the scheduler selects reveals where other projects' pods run.
//
// Source: Kubernetes, resource quotas, cross-namespace pod affinity quota.
func newAffinity() *reserved {
	return newReserved(CrossNamespacePodAffinity, func(pod *corev1.Pod, namespace string) *property {
		if !slices.ContainsFunc(affinityTerms(pod.Spec.Affinity), func(term corev1.PodAffinityTerm) bool { return leaves(term, namespace) }) {
			return nil
		}
		return &property{
			scope: corev1.ResourceQuotaScopeCrossNamespacePodAffinity, at: field.NewPath("spec", "affinity"),
			text: "it selects pods of other projects; remove namespaces and namespaceSelector",
		}
	})
}

// affinityTerms returns all terms of a pod's pod affinity and pod anti-affinity.
func affinityTerms(affinity *corev1.Affinity) (terms []corev1.PodAffinityTerm) {
	if affinity == nil {
		return nil
	}
	add := func(required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) {
		terms = append(terms, required...)
		for _, weighted := range preferred {
			terms = append(terms, weighted.PodAffinityTerm)
		}
	}
	if own := affinity.PodAffinity; own != nil {
		add(own.RequiredDuringSchedulingIgnoredDuringExecution, own.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if own := affinity.PodAntiAffinity; own != nil {
		add(own.RequiredDuringSchedulingIgnoredDuringExecution, own.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	return terms
}

// leaves reports whether a term can select pods in another namespace.
func leaves(term corev1.PodAffinityTerm, namespace string) bool {
	return term.NamespaceSelector != nil || slices.ContainsFunc(term.Namespaces, func(name string) bool { return name != namespace })
}
