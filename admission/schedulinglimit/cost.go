package schedulinglimit

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/slipway-platform/slipway/internal/labelselector"
)

// freeConditions is the number of tolerations and node selector labels that do not increase a pod's
// cost. They are cheap to evaluate, and admission adds some of them to each pod.
const freeConditions = 10

// costOf returns the number of terms, requirements and values that the scheduler evaluates for a
// pod.
func costOf(spec *corev1.PodSpec) int {
	cost := max(0, len(spec.NodeSelector)+len(spec.Tolerations)-freeConditions)
	for i := range spec.TopologySpreadConstraints {
		constraint := &spec.TopologySpreadConstraints[i]
		cost += 1 + labelselector.Size(constraint.LabelSelector) + len(constraint.MatchLabelKeys)
	}
	affinity := spec.Affinity
	if affinity == nil {
		return cost
	}
	if own := affinity.PodAffinity; own != nil {
		cost += podTermsCost(own.RequiredDuringSchedulingIgnoredDuringExecution, own.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if own := affinity.PodAntiAffinity; own != nil {
		cost += podTermsCost(own.RequiredDuringSchedulingIgnoredDuringExecution, own.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if own := affinity.NodeAffinity; own != nil {
		cost += nodeAffinityCost(own)
	}
	return cost
}

func podTermsCost(required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) (cost int) {
	for i := range required {
		cost += podTermCost(&required[i])
	}
	for i := range preferred {
		cost += podTermCost(&preferred[i].PodAffinityTerm)
	}
	return cost
}

func podTermCost(term *corev1.PodAffinityTerm) int {
	return 1 + labelselector.Size(term.LabelSelector) + labelselector.Size(term.NamespaceSelector) +
		len(term.Namespaces) + len(term.MatchLabelKeys) + len(term.MismatchLabelKeys)
}

func nodeAffinityCost(affinity *corev1.NodeAffinity) (cost int) {
	if required := affinity.RequiredDuringSchedulingIgnoredDuringExecution; required != nil {
		for i := range required.NodeSelectorTerms {
			cost += nodeTermCost(&required.NodeSelectorTerms[i])
		}
	}
	for i := range affinity.PreferredDuringSchedulingIgnoredDuringExecution {
		cost += nodeTermCost(&affinity.PreferredDuringSchedulingIgnoredDuringExecution[i].Preference)
	}
	return cost
}

func nodeTermCost(term *corev1.NodeSelectorTerm) int {
	cost := 1
	for _, requirements := range [][]corev1.NodeSelectorRequirement{term.MatchExpressions, term.MatchFields} {
		for i := range requirements {
			cost += 1 + len(requirements[i].Values)
		}
	}
	return cost
}
