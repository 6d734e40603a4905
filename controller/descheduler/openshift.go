package descheduler

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/descheduler/pkg/api"
	"sigs.k8s.io/descheduler/pkg/framework/plugins/defaultevictor"
	"sigs.k8s.io/descheduler/pkg/framework/plugins/removeduplicates"
	"sigs.k8s.io/descheduler/pkg/framework/plugins/removepodsviolatinginterpodantiaffinity"
	"sigs.k8s.io/descheduler/pkg/framework/plugins/removepodsviolatingnodeaffinity"
	"sigs.k8s.io/yaml"
)

// openShiftPolicy is an OpenShift 3.11 DeschedulerPolicy (administration guide, section 16.3.3).
type openShiftPolicy struct {
	APIVersion string              `json:"apiVersion"`
	Kind       string              `json:"kind"`
	Strategies map[string]strategy `json:"strategies"`
}

type strategy struct {
	Enabled bool `json:"enabled"`
	// Weight has no effect, as in OpenShift.
	Weight int            `json:"weight"`
	Params strategyParams `json:"params"`
}

type strategyParams struct {
	Utilization      utilization `json:"nodeResourceUtilizationThresholds"`
	NodeAffinityType []string    `json:"nodeAffinityType"`
}

// utilization contains percentages of a node's allocatable resources.
type utilization struct {
	Thresholds       api.ResourceThresholds `json:"thresholds"`
	TargetThresholds api.ResourceThresholds `json:"targetThresholds"`
	NumberOfNodes    int                    `json:"numberOfNodes"`
}

// The OpenShift strategies that upstream plugins implement, in the order in which they run.
// nodeAffinity and antiAffinity evict pods that violate a rule. Then, duplicates and lowUtilization
// balance the remaining pods.
const (
	nodeAffinity = removepodsviolatingnodeaffinity.PluginName
	antiAffinity = removepodsviolatinginterpodantiaffinity.PluginName
	duplicates   = removeduplicates.PluginName
)

// parseOpenShift decodes and translates an OpenShift policy. Strategies that the policy omits are
// disabled.
func parseOpenShift(content []byte) (*api.DeschedulerPolicy, error) {
	var policy openShiftPolicy
	if err := yaml.UnmarshalStrict(content, &policy); err != nil {
		return nil, err
	}
	strategyNames := []string{nodeAffinity, antiAffinity, duplicates, lowUtilization}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(policy.Strategies)) {
		if !slices.Contains(strategyNames, name) {
			errs = append(errs, fmt.Errorf("strategies: %q is unknown; the strategies are %s", name, strings.Join(strategyNames, ", ")))
		}
	}
	profile := api.DeschedulerProfile{Name: "openshift"}
	// Pods that fit on no other node are not evicted.
	profile.PluginConfigs = []api.PluginConfig{{Name: defaultevictor.PluginName, Args: &defaultevictor.DefaultEvictorArgs{NodeFit: true}}}
	for _, name := range strategyNames {
		strategy := policy.Strategies[name]
		if !strategy.Enabled {
			continue
		}
		profile.PluginConfigs = append(profile.PluginConfigs, api.PluginConfig{Name: name, Args: strategy.args(name)})
		set := &profile.Plugins.Deschedule
		if name == duplicates || name == lowUtilization {
			set = &profile.Plugins.Balance
		}
		set.Enabled = append(set.Enabled, name)
	}
	return &api.DeschedulerPolicy{Profiles: []api.DeschedulerProfile{profile}}, errors.Join(errs...)
}

// args returns the arguments for the plugin that implements a strategy.
func (s strategy) args(name string) runtime.Object {
	switch name {
	case nodeAffinity:
		return &removepodsviolatingnodeaffinity.RemovePodsViolatingNodeAffinityArgs{NodeAffinityType: s.Params.NodeAffinityType}
	case antiAffinity:
		return &removepodsviolatinginterpodantiaffinity.RemovePodsViolatingInterPodAntiAffinityArgs{}
	case duplicates:
		return &removeduplicates.RemoveDuplicatesArgs{}
	}
	limits := s.Params.Utilization
	return &utilizationArgs{
		Thresholds: limits.Thresholds, TargetThresholds: limits.TargetThresholds, NumberOfNodes: limits.NumberOfNodes,
	}
}
