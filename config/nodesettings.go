package config

import (
	"fmt"
	"os"

	"sigs.k8s.io/yaml"
)

// NodeSettings returns a MasterConfig, as YAML, with the settings that a node's components read.
func (c *MasterConfig) NodeSettings() (string, error) {
	network := map[string]any{
		"clusterNetworks": c.NetworkConfig.ClusterNetworks, "serviceNetworkCIDR": c.NetworkConfig.ServiceNetworkCIDR,
		"ingressIPNetworkCIDR": c.NetworkConfig.IngressIPNetworkCIDR, "networkPluginName": c.NetworkConfig.NetworkPluginName,
	}
	images := map[string]any{
		"internalRegistryHostname": c.ImagePolicyConfig.InternalRegistryHostname,
		"externalRegistryHostname": c.ImagePolicyConfig.ExternalRegistryHostname,
	}
	if allowed := c.ImagePolicyConfig.AllowedRegistriesForImport; allowed != nil {
		images["allowedRegistriesForImport"] = *allowed
	}
	settings, err := yaml.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "MasterConfig", "masterPublicURL": c.MasterPublicURL,
		"servingInfo":       map[string]any{"bindAddress": c.ServingInfo.BindAddress},
		"networkConfig":     network,
		"routingConfig":     map[string]any{"subdomain": c.RoutingConfig.Subdomain},
		"imagePolicyConfig": images,
		"slipway": map[string]any{
			"registry": map[string]any{"disabled": c.Slipway.Registry.Disabled, "bindAddress": c.Slipway.Registry.BindAddress},
			"outbound": map[string]any{
				"allowedNetworks": append([]string{}, c.Slipway.Outbound.AllowedNetworks...), // never null
				"allowedHosts":    append([]string{}, c.Slipway.Outbound.AllowedHosts...),
			},
		},
	})
	if err != nil {
		return "", fmt.Errorf("encode settings for nodes: %w", err)
	}
	return "# Settings of the cluster. The node process replaces this file with the masters' settings.\n" + string(settings), nil
}

// CheckNodeSettings returns an error if this program does not accept a master's settings for nodes,
// for example because the master runs a newer version. settings is the result of NodeSettings on
// the master.
func CheckNodeSettings(settings string) error {
	dir, err := os.MkdirTemp("", "slipway-")
	if err != nil {
		return fmt.Errorf("check cluster settings: %w", err)
	}
	defer os.RemoveAll(dir)
	if err := WriteSettings(dir, settings); err != nil {
		return err
	}
	if _, err := Load(dir, ""); err != nil {
		return fmt.Errorf("check cluster settings: %w; use the same version of slipway on all hosts", err)
	}
	return nil
}
