package policy

// PredicateNames returns the names of the predicates that have no argument (administration guide,
// section 16.2.5, and additional predicates that 3.11's scheduler accepts).
func PredicateNames() []string {
	return []string{
		"CheckNodeCondition",
		"CheckNodeDiskPressure",
		"CheckNodeLabelPresence",
		"CheckNodeMemoryPressure",
		"CheckNodePIDPressure",
		"CheckNodeUnschedulable",
		"CheckServiceAffinity",
		"CheckVolumeBinding",
		"GeneralPredicates",
		"HostName",
		"MatchInterPodAffinity",
		"MatchNodeSelector",
		"MaxAzureDiskVolumeCount",
		"MaxCSIVolumeCountPred",
		"MaxEBSVolumeCount",
		"MaxGCEPDVolumeCount",
		"NoDiskConflict",
		"NoVolumeZoneConflict",
		"PodFitsHostPorts",
		"PodFitsPorts",
		"PodFitsResources",
		"PodToleratesNodeNoExecuteTaints",
		"PodToleratesNodeTaints",
		"checkServiceAffinity",
	}
}

// PriorityNames returns the names of the priorities that have no argument (administration guide,
// section 16.2.6).
func PriorityNames() []string {
	return []string{
		"BalancedResourceAllocation",
		"EqualPriority",
		"ImageLocalityPriority",
		"InterPodAffinityPriority",
		"LeastRequestedPriority",
		"MostRequestedPriority",
		"NodeAffinityPriority",
		"NodePreferAvoidPodsPriority",
		"SelectorSpreadPriority",
		"ServiceSpreadingPriority",
		"TaintTolerationPriority",
	}
}

// DefaultPriorities returns the priorities that apply if a Policy's priorities are null
// (administration guide, section 16.2.6.1.1).
func DefaultPriorities() []Priority {
	return []Priority{
		{Name: "SelectorSpreadPriority", Weight: 1},
		{Name: "InterPodAffinityPriority", Weight: 1},
		{Name: "LeastRequestedPriority", Weight: 1},
		{Name: "BalancedResourceAllocation", Weight: 1},
		{Name: "NodePreferAvoidPodsPriority", Weight: 10000},
		{Name: "NodeAffinityPriority", Weight: 1},
		{Name: "TaintTolerationPriority", Weight: 1},
	}
}
