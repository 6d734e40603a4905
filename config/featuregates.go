package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	legacyv1 "github.com/openshift/api/legacyconfig/v1"
)

// featureGates is the name of the argument that sets feature gates.
const featureGates = "feature-gates"

// graduatedGates returns OpenShift 3 feature gates that no longer exist in Kubernetes because their
// features are always enabled.
func graduatedGates() []string {
	return []string{
		"AdvancedAuditing", "AttachVolumeLimit", "BlockVolume", "CPUManager", "CRIContainerLogRotation", "CSIBlockVolume",
		"CSIDriverRegistry", "CSINodeInfo", "CSIPersistentVolume", "CustomPodDNS", "CustomResourceSubresources",
		"CustomResourceValidation", "DevicePlugins", "ExpandInUsePersistentVolumes", "ExpandPersistentVolumes", "HugePages",
		"KubeletPluginsWatcher", "LocalStorageCapacityIsolation", "MountPropagation", "PersistentLocalVolumes", "PodPriority",
		"PodReadinessGates", "PodShareProcessNamespace", "PVCProtection", "RotateKubeletClientCertificate",
		"ScheduleDaemonSetPods", "ServiceNodeExclusion", "StorageObjectInUseProtection", "SupportIPVSProxyMode",
		"SupportPodPidsLimit", "Sysctls", "TaintBasedEvictions", "TaintNodesByCondition", "TokenRequest",
		"TokenRequestProjection", "VolumeScheduling", "VolumeSubpath",
	}
}

// removeGraduatedGates removes graduated gates from the arguments, because Kubernetes rejects
// unknown gates. Ignored lists the removed gates. If an argument disables a graduated feature,
// removeGraduatedGates returns a problem.
func (c *Config) removeGraduatedGates() Problems {
	kube := &c.Master.KubernetesMasterConfig
	var problems Problems
	for _, arguments := range []struct {
		document *document
		kind     string
		key      string
		values   *legacyv1.ExtendedArguments
	}{
		{c.master, masterKind, "kubernetesMasterConfig.apiServerArguments", &kube.APIServerArguments},
		{c.master, masterKind, "kubernetesMasterConfig.controllerArguments", &kube.ControllerArguments},
		{c.master, masterKind, "kubernetesMasterConfig.schedulerArguments", &kube.SchedulerArguments},
		{c.node, nodeKind, "kubeletArguments", &c.Node.KubeletArguments},
	} {
		if len((*arguments.values)[featureGates]) == 0 {
			continue
		}
		check, key := &checker{document: arguments.document}, arguments.key+"."+featureGates
		var remaining []string
		for _, gate := range strings.Split(strings.Join((*arguments.values)[featureGates], ","), ",") {
			name, value, _ := strings.Cut(strings.TrimSpace(gate), "=")
			switch {
			case !slices.Contains(graduatedGates(), name):
				remaining = append(remaining, gate)
			case value != "true":
				check.fail(key, "has %s, but this feature is always enabled; remove it", gate)
			default:
				c.graduated = append(c.graduated, fmt.Sprintf("%s: %s %s, because the feature is always enabled", arguments.kind, key, name))
			}
		}
		values := maps.Clone(*arguments.values)
		if delete(values, featureGates); len(remaining) > 0 {
			values[featureGates] = []string{strings.Join(remaining, ",")}
		}
		*arguments.values = values
		problems = append(problems, check.problems...)
	}
	return problems
}

// ControlPlaneGates returns the feature gates in the arguments of the API server, the controllers
// and the scheduler. These components run in one process, which has a single set of gates.
func (c *Config) ControlPlaneGates() (map[string]bool, error) {
	kube := c.Master.KubernetesMasterConfig
	return parseGates(map[string]legacyv1.ExtendedArguments{
		"kubernetesMasterConfig.apiServerArguments":  kube.APIServerArguments,
		"kubernetesMasterConfig.controllerArguments": kube.ControllerArguments,
		"kubernetesMasterConfig.schedulerArguments":  c.Scheduler.Arguments,
	})
}

// NodeGates returns the feature gates in the arguments of the kubelet and the service proxy.
func (c *Config) NodeGates() (map[string]bool, error) {
	return parseGates(map[string]legacyv1.ExtendedArguments{"kubeletArguments": c.Node.KubeletArguments, "proxyArguments": c.Node.ProxyArguments})
}

func parseGates(arguments map[string]legacyv1.ExtendedArguments) (map[string]bool, error) {
	gates, origins := map[string]bool{}, map[string]string{}
	for _, origin := range slices.Sorted(maps.Keys(arguments)) {
		for _, gate := range strings.Split(strings.Join(arguments[origin][featureGates], ","), ",") {
			if gate = strings.TrimSpace(gate); gate == "" {
				continue
			}
			name, text, _ := strings.Cut(gate, "=")
			value, err := strconv.ParseBool(text)
			if err != nil {
				return nil, fmt.Errorf("%s.%s: %q is not NAME=true or NAME=false", origin, featureGates, gate)
			}
			if other, exists := gates[name]; exists && other != value {
				return nil, fmt.Errorf("%s.%s: %s is %t, but %s.%s sets %t; both run in one process, so use one value", origin, featureGates, name, value, origins[name], featureGates, other)
			}
			gates[name], origins[name] = value, origin
		}
	}
	return gates, nil
}
