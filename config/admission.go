package config

import (
	"fmt"
	"maps"
	"os"
	"slices"

	"sigs.k8s.io/yaml"
)

// AdmissionPlugin is what the configuration says of one admission plug-in.
type AdmissionPlugin struct {
	// Name is the plug-in's.
	Name string
	// Disabled turns it off; otherwise it is on.
	Disabled bool
	// Configuration is its own configuration as JSON, nil when it is only switched.
	Configuration []byte
}

// BuildDefaults and BuildOverrides are configured as plug-ins, as OpenShift 3 has it; what they say is applied where the pods of builds are made.
const BuildDefaults, BuildOverrides = "BuildDefaults", "BuildOverrides"

// admissionPlugins are the plug-ins that can be configured: those of Kubernetes that read a configuration or are off by default, and ours.
func admissionPlugins() []string {
	return []string{
		"AlwaysPullImages", "DefaultTolerationSeconds", "EventRateLimit", "ExtendedResourceToleration", "ImagePolicyWebhook", "LimitRanger",
		"LimitPodHardAntiAffinityTopology", "MutatingAdmissionWebhook", "PodNodeSelector", "PodTolerationRestriction", "ResourceQuota",
		"ValidatingAdmissionWebhook",
		"ClusterResourceOverride", "ExternalIPRanger", "OriginPodNodeEnvironment", "PodNodeConstraints", "ProjectRequestLimit", "RunOnceDuration",
		"SecurityContextConstraint", "authorization.openshift.io/RestrictSubjectBindings", "openshift.io/RestrictedEndpointsAdmission",
		"openshift.io/ImagePolicy", "openshift.io/IngressAdmission", "openshift.io/SystemPriority", "BuildByStrategy", "SCCExecRestrictions", BuildDefaults, BuildOverrides,
	}
}

// AdmissionPlugins are the plug-ins that admissionConfig.pluginConfig has and that exist here, by name. An external file that cannot be
// read is an error.
func (c *MasterConfig) AdmissionPlugins() ([]AdmissionPlugin, error) {
	var plugins []AdmissionPlugin
	for _, name := range slices.Sorted(maps.Keys(c.AdmissionConfig.PluginConfig)) {
		given := c.AdmissionConfig.PluginConfig[name]
		if given == nil || !slices.Contains(admissionPlugins(), name) {
			continue
		}
		content := given.Configuration.Raw
		if given.Location != "" {
			file, err := os.ReadFile(given.Location)
			if err != nil {
				return nil, fmt.Errorf("read configuration of admission plug-in %s: %w", name, err)
			}
			if content, err = yaml.YAMLToJSON(file); err != nil {
				return nil, fmt.Errorf("read configuration of admission plug-in %s: %q: %w", name, given.Location, err)
			}
		}
		plugin := AdmissionPlugin{Name: name, Configuration: content}
		header := struct {
			Kind    string `json:"kind"`
			Disable bool   `json:"disable"`
		}{}
		if err := yaml.Unmarshal(content, &header); err != nil {
			return nil, fmt.Errorf("read configuration of admission plug-in %s: %w", name, err)
		}
		if header.Kind == "DefaultAdmissionConfig" || len(content) == 0 {
			plugin.Disabled, plugin.Configuration = header.Disable, nil
		}
		plugins = append(plugins, plugin)
	}
	return plugins, nil
}
