package platform

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"

	"github.com/slipway-platform/slipway/admission/reach"
	"github.com/slipway-platform/slipway/apiserver"
	"github.com/slipway-platform/slipway/config"
	"github.com/slipway-platform/slipway/config/reload"
	"github.com/slipway-platform/slipway/internal/atomicfile"
	"github.com/slipway-platform/slipway/kube"
)

// setAdmission configures the admission plugins of the API server. Slipway's plugins can follow
// changes of the configuration; upstream reads the configurations of the others from a file.
func (h *Host) setAdmission(server *kube.APIServer) (reload.Adjustment, error) {
	plugins, err := h.Master.AdmissionPlugins()
	if err != nil {
		return reload.Adjustment{}, err
	}
	live := apiserver.MakeLive(server.Features, pluginConfigs(plugins))
	adjustment := reload.Adjustment{Prepare: func(next *config.Config) (func(), error) {
		plugins, err := next.Master.AdmissionPlugins()
		if err != nil {
			return nil, err
		}
		return live.Prepare(pluginConfigs(plugins))
	}}
	for _, name := range live.Names() {
		adjustment.Keys = append(adjustment.Keys, pluginKey(name))
	}
	plugins = slices.DeleteFunc(plugins, func(p config.AdmissionPlugin) bool {
		return slices.Contains(live.Names(), p.Name) || p.Name == config.BuildDefaults || p.Name == config.BuildOverrides
	})
	return adjustment, h.writeAdmission(server, plugins)
}

// writeAdmission writes the file with the configurations of upstream's plugins.
func (h *Host) writeAdmission(server *kube.APIServer, plugins []config.AdmissionPlugin) error {
	type pluginConfig struct {
		Name          string          `json:"name"`
		Configuration json.RawMessage `json:"configuration"`
	}
	var configs []pluginConfig
	for _, plugin := range plugins {
		switch {
		case plugin.Disabled:
			server.DisabledPlugins = append(server.DisabledPlugins, plugin.Name)
			continue
		case plugin.Configuration != nil:
			configs = append(configs, pluginConfig{plugin.Name, plugin.Configuration})
		}
		server.EnabledPlugins = append(server.EnabledPlugins, plugin.Name)
	}
	content, err := json.Marshal(map[string]any{
		"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration", "plugins": configs,
	})
	if err != nil {
		return fmt.Errorf("write configuration of admission: %w", err)
	}
	server.AdmissionFile = filepath.Join(h.RunDir(), "admission.json")
	return atomicfile.Write(server.AdmissionFile, content, 0o600)
}

// pluginKey returns the setting that configures a plugin.
func pluginKey(name string) string { return "admissionConfig.pluginConfig." + name }

// pluginConfigs returns the configurations of plugins by name.
func pluginConfigs(plugins []config.AdmissionPlugin) map[string]apiserver.PluginConfig {
	configs := map[string]apiserver.PluginConfig{}
	for _, plugin := range plugins {
		configs[plugin.Name] = apiserver.PluginConfig{Disabled: plugin.Disabled, Content: plugin.Configuration}
	}
	return configs
}

// networks returns the addresses that services can have, and those of the platform.
func (h *Host) networks() reach.Networks {
	networks := reach.Networks{
		External: h.Master.NetworkConfig.ExternalIPNetworkCIDRs, Ingress: h.Master.IngressNetwork(),
		Platform: []reach.Network{{Prefix: h.Master.ServiceNetwork(), Name: "the service network"}},
	}
	for _, cluster := range h.Master.NetworkConfig.ClusterNetworks {
		if pods, err := netip.ParsePrefix(cluster.CIDR); err == nil {
			networks.Platform = append(networks.Platform, reach.Network{Prefix: pods, Name: "the pod network"})
		}
	}
	for name, text := range map[string]string{
		"the network of the nodes": h.address.String(), "the network of the DNS server": h.dnsHost(),
	} {
		if address, err := netip.ParseAddr(text); err == nil {
			prefix := netip.PrefixFrom(address, address.BitLen())
			networks.Platform = append(networks.Platform, reach.Network{Prefix: prefix, Name: name})
		}
	}
	return networks
}
