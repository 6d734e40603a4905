package scheduler

import (
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"github.com/slipway-platform/slipway/kube/scheduler/policy"
)

// predicates maps each predicate without an argument to the corresponding upstream plugins. The
// predicates for cloud disks map to the volume limits plugin, because CSI drivers report these
// limits. The predicates for node conditions map to the taint plugin, because Kubernetes reports
// node conditions as taints. A label predicate has no plugin, because it checks nothing if the
// Policy specifies no labels.
func predicates() map[string][]string {
	general := []string{names.NodeResourcesFit, names.NodeName, names.NodePorts, names.NodeAffinity}
	taints, limits, ports := []string{names.TaintToleration}, []string{names.NodeVolumeLimits}, []string{names.NodePorts}
	return map[string][]string{
		"CheckNodeCondition":              taints,
		"CheckNodeDiskPressure":           taints,
		"CheckNodeLabelPresence":          nil,
		"CheckNodeMemoryPressure":         taints,
		"CheckNodePIDPressure":            taints,
		"CheckNodeUnschedulable":          {names.NodeUnschedulable},
		"CheckServiceAffinity":            nil,
		"CheckVolumeBinding":              {names.VolumeBinding},
		"GeneralPredicates":               general,
		"HostName":                        {names.NodeName},
		"MatchInterPodAffinity":           {names.InterPodAffinity},
		"MatchNodeSelector":               {names.NodeAffinity},
		"MaxAzureDiskVolumeCount":         limits,
		"MaxCSIVolumeCountPred":           limits,
		"MaxEBSVolumeCount":               limits,
		"MaxGCEPDVolumeCount":             limits,
		"NoDiskConflict":                  {names.VolumeRestrictions},
		"NoVolumeZoneConflict":            {names.VolumeZone},
		"PodFitsHostPorts":                ports,
		"PodFitsPorts":                    ports,
		"PodFitsResources":                {names.NodeResourcesFit},
		"PodToleratesNodeNoExecuteTaints": taints,
		"PodToleratesNodeTaints":          taints,
		"checkServiceAffinity":            nil,
	}
}

// upstreamPriorities maps each priority to the corresponding upstream plugin. EqualPriority
// requires no plugin.
func upstreamPriorities() map[string]string {
	return map[string]string{
		"BalancedResourceAllocation": names.NodeResourcesBalancedAllocation,
		"EqualPriority":              "",
		"ImageLocalityPriority":      names.ImageLocality,
		"InterPodAffinityPriority":   names.InterPodAffinity,
		"LeastRequestedPriority":     names.NodeResourcesFit,
		"NodeAffinityPriority":       names.NodeAffinity,
		"TaintTolerationPriority":    names.TaintToleration,
	}
}

// namedFactory returns the factory for a plugin with the given name. A Policy can use a rule
// several times under different names.
type namedFactory func(name string) frameworkruntime.PluginFactory

// predicatePlugin returns the plugin for a predicate with an argument.
func predicatePlugin(argument *policy.PredicateArgument) namedFactory {
	if affinity := argument.ServiceAffinity; affinity != nil {
		return newServiceAffinity(affinity.Labels)
	}
	return newLabelsPresence(argument.LabelsPresence)
}

// priorityPlugin returns the plugin for a priority that upstream lacks.
func priorityPlugin(priority *policy.Priority) namedFactory {
	switch argument := priority.Argument; {
	case argument != nil && argument.ServiceAntiAffinity != nil:
		return newServiceAntiAffinity(string(argument.ServiceAntiAffinity.Label))
	case argument != nil:
		return newLabelPreference(argument.LabelPreference)
	}
	switch priority.Name {
	case "MostRequestedPriority":
		return newMostRequested
	case "NodePreferAvoidPodsPriority":
		return newPreferAvoidPods
	case "ServiceSpreadingPriority":
		return newSelectorSpread(true)
	}
	return newSelectorSpread(false)
}
