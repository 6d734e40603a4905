package scheduler

import (
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"github.com/slipway-platform/slipway/kube/scheduler/policy"
)

// predicates returns the plugins that upstream has for each predicate without an argument. The
// limits of clouds' disks are those of their CSI drivers. Kubernetes reports conditions of nodes as
// taints. A predicate for labels checks nothing if the Policy names no labels.
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

// upstreamPriorities returns the plugin that upstream has for each priority. EqualPriority needs
// none.
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

// predicatePlugin returns the plugin for a predicate with an argument.
func predicatePlugin(name string, argument *policy.PredicateArgument) frameworkruntime.PluginFactory {
	if affinity := argument.ServiceAffinity; affinity != nil {
		return newServiceAffinity(name, affinity.Labels)
	}
	return newLabelsPresence(name, argument.LabelsPresence)
}

// priorityPlugin returns the plugin for a priority that upstream lacks.
func priorityPlugin(name string, priority *policy.Priority) frameworkruntime.PluginFactory {
	switch argument := priority.Argument; {
	case argument != nil && argument.ServiceAntiAffinity != nil:
		return newServiceAntiAffinity(name, string(argument.ServiceAntiAffinity.Label))
	case argument != nil:
		return newLabelPreference(name, argument.LabelPreference)
	}
	switch priority.Name {
	case "MostRequestedPriority":
		return newMostRequested(name)
	case "NodePreferAvoidPodsPriority":
		return newPreferAvoidPods(name)
	case "ServiceSpreadingPriority":
		return newSelectorSpread(name, true)
	}
	return newSelectorSpread(name, false)
}
