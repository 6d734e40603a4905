package descheduler

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/descheduler/pkg/api"
	"sigs.k8s.io/descheduler/pkg/api/v1alpha2"
	"sigs.k8s.io/descheduler/pkg/framework/pluginregistry"
	"sigs.k8s.io/descheduler/pkg/framework/plugins/defaultevictor"
	"sigs.k8s.io/yaml"
)

const (
	kind             = "DeschedulerPolicy"
	openShiftVersion = "descheduler/v1alpha1"
)

// ReadPolicy reads a DeschedulerPolicy file in either the OpenShift 3.11 version,
// descheduler/v1alpha1, or the Kubernetes version, descheduler/v1alpha2.
func ReadPolicy(path string) (*api.DeschedulerPolicy, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read descheduler policy: %w", err)
	}
	policy, err := parse(content)
	if err != nil {
		return nil, fmt.Errorf("read descheduler policy %q: %w", path, err)
	}
	return policy, nil
}

// parse decodes a policy, validates it and sets defaults.
func parse(content []byte) (*api.DeschedulerPolicy, error) {
	var meta metav1.TypeMeta
	if err := yaml.Unmarshal(content, &meta); err != nil {
		return nil, err
	}
	if meta.Kind != kind {
		return nil, fmt.Errorf("kind is %q, must be %s", meta.Kind, kind)
	}
	registry := newRegistry()
	var policy *api.DeschedulerPolicy
	var err error
	switch meta.APIVersion {
	case openShiftVersion:
		policy, err = parseOpenShift(content)
	case v1alpha2.SchemeGroupVersion.String():
		policy, err = parseCurrent(content, registry)
	default:
		err = fmt.Errorf("apiVersion is %q, must be %s or %s", meta.APIVersion, openShiftVersion, v1alpha2.SchemeGroupVersion)
	}
	if err != nil {
		return nil, err
	}
	return policy, complete(policy, registry)
}

// parseCurrent decodes a v1alpha2 policy. A plugin's arguments are decoded into the type that the
// plugin registers.
func parseCurrent(content []byte, registry pluginregistry.Registry) (*api.DeschedulerPolicy, error) {
	var external v1alpha2.DeschedulerPolicy
	if err := yaml.UnmarshalStrict(content, &external); err != nil {
		return nil, err
	}
	var errs []error
	for i := range external.Profiles {
		profile := &external.Profiles[i]
		for j := range profile.PluginConfigs {
			config := &profile.PluginConfigs[j]
			plugin, ok := registry[config.Name]
			if !ok {
				errs = append(errs, fmt.Errorf("profile %q: plugin %q is unknown; the plugins are %s", profile.Name, config.Name, names(registry)))
				continue
			}
			args := plugin.PluginArgInstance.DeepCopyObject()
			if raw := config.Args.Raw; raw != nil {
				if err := yaml.UnmarshalStrict(raw, args); err != nil {
					errs = append(errs, fmt.Errorf("profile %q: arguments of plugin %q: %w", profile.Name, config.Name, err))
				}
			}
			config.Args.Raw, config.Args.Object = nil, args
		}
	}
	if len(external.MetricsProviders) > 0 || external.MetricsCollector != nil {
		errs = append(errs, errors.New("metricsProviders and metricsCollector are not supported; LowNodeUtilization uses the requests of pods"))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	policy := &api.DeschedulerPolicy{}
	return policy, v1alpha2.Convert_v1alpha2_DeschedulerPolicy_To_api_DeschedulerPolicy(&external, policy, nil)
}

// complete validates the plugin arguments, sets their defaults, and adds the filters that decide
// which pods can be evicted.
func complete(policy *api.DeschedulerPolicy, registry pluginregistry.Registry) error {
	// Report each failed eviction.
	report := true
	policy.EvictionFailureEventNotification = &report
	var errs []error
	for i := range policy.Profiles {
		profile := &policy.Profiles[i]
		for _, config := range profile.PluginConfigs {
			plugin := registry[config.Name]
			plugin.PluginArgDefaulter(config.Args)
			if err := plugin.PluginArgValidator(config.Args); err != nil {
				errs = append(errs, fmt.Errorf("profile %q: %s: %w", profile.Name, config.Name, err))
			}
		}
		addFilters(profile)
	}
	return errors.Join(errs...)
}

func addFilters(profile *api.DeschedulerProfile) {
	plugins := &profile.Plugins
	for _, name := range []string{defaultevictor.PluginName, criticalName} {
		for _, set := range []*api.PluginSet{&plugins.Filter, &plugins.PreEvictionFilter} {
			if !slices.Contains(set.Enabled, name) {
				set.Enabled = append(set.Enabled, name)
			}
		}
		configured := func(config api.PluginConfig) bool { return config.Name == name }
		if !slices.ContainsFunc(profile.PluginConfigs, configured) {
			profile.PluginConfigs = append(profile.PluginConfigs, api.PluginConfig{Name: name, Args: &defaultevictor.DefaultEvictorArgs{}})
		}
	}
}

func names(registry pluginregistry.Registry) string {
	var list []string
	for name := range registry {
		if name != criticalName {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}
