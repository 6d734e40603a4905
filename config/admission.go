package config

import (
	"fmt"
	"maps"
	"os"
	"slices"

	"sigs.k8s.io/yaml"
)

// AdmissionPlugin is the configuration of one admission plugin.
type AdmissionPlugin struct {
	Name string
	// Disabled means that the plugin does not run.
	Disabled bool
	// Configuration is the plugin's own configuration in JSON. It is nil if the file only enables
	// or disables the plugin.
	Configuration []byte
}

// BuildDefaults and BuildOverrides are configured as admission plugins, as in OpenShift 3. Slipway
// applies them when it creates a build pod.
const (
	BuildDefaults  = "BuildDefaults"
	BuildOverrides = "BuildOverrides"
)

// admissionPlugins returns the configurable plugins: Kubernetes' plugins that read a configuration
// or are disabled by default, and Slipway's plugins.
func admissionPlugins() []string {
	return []string{
		"AlwaysPullImages", "DefaultTolerationSeconds", "EventRateLimit",
		"ExtendedResourceToleration", "ImagePolicyWebhook", "LimitRanger",
		"LimitPodHardAntiAffinityTopology", "MutatingAdmissionWebhook", "PodNodeSelector",
		"PodTolerationRestriction", "ResourceQuota", "ValidatingAdmissionWebhook",
		"ClusterResourceOverride", "ExternalIPRanger", "OriginPodNodeEnvironment",
		"PodNodeConstraints", "ProjectRequestLimit", "RunOnceDuration",
		"SecurityContextConstraint", "authorization.openshift.io/RestrictSubjectBindings",
		"openshift.io/RestrictedEndpointsAdmission", "openshift.io/ImagePolicy",
		"openshift.io/IngressAdmission", "openshift.io/SystemPriority", "openshift.io/CrossNamespacePodAffinity", "BuildByStrategy",
		"SCCExecRestrictions", "PodPreset", "slipway.io/ProjectName", "slipway.io/ServiceLimit", BuildDefaults, BuildOverrides,
	}
}

// PluginKey returns the configuration key of an admission plugin.
func PluginKey(name string) string { return "admissionConfig.pluginConfig." + name }

// AdmissionPlugins returns the supported plugins in admissionConfig.pluginConfig, sorted by name.
// It returns an error if a plugin's file cannot be read.
func (c *MasterConfig) AdmissionPlugins() ([]AdmissionPlugin, error) {
	var plugins []AdmissionPlugin
	for _, name := range slices.Sorted(maps.Keys(c.AdmissionConfig.PluginConfig)) {
		plugin := c.AdmissionConfig.PluginConfig[name]
		if plugin == nil || !slices.Contains(admissionPlugins(), name) {
			continue
		}
		content := plugin.Configuration.Raw
		if plugin.Location != "" {
			file, err := os.ReadFile(plugin.Location)
			if err != nil {
				return nil, fmt.Errorf("read configuration of admission plugin %s: %w", name, err)
			}
			if content, err = yaml.YAMLToJSON(file); err != nil {
				return nil, fmt.Errorf("read configuration of admission plugin %s: %q: %w", name, plugin.Location, err)
			}
		}
		result := AdmissionPlugin{Name: name, Configuration: content}
		header := struct {
			Kind    string `json:"kind"`
			Disable bool   `json:"disable"`
		}{}
		if err := yaml.Unmarshal(content, &header); err != nil {
			return nil, fmt.Errorf("read configuration of admission plugin %s: %w", name, err)
		}
		if header.Kind == "DefaultAdmissionConfig" || len(content) == 0 {
			result.Disabled, result.Configuration = header.Disable, nil
		}
		plugins = append(plugins, result)
	}
	return plugins, nil
}
