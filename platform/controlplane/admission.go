package controlplane

import (
	"net/netip"
	"slices"

	"github.com/slipway-platform/slipway/admission/reach"
	"github.com/slipway-platform/slipway/apiserver"
	"github.com/slipway-platform/slipway/config"
	"github.com/slipway-platform/slipway/config/reload"
	"github.com/slipway-platform/slipway/kube"
)

// setAdmission configures the API server's admission plugins. Slipway's plugins can apply
// configuration changes at run time. Upstream reads the configurations of all other plugins from a
// file.
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
		adjustment.Keys = append(adjustment.Keys, config.PluginKey(name))
	}
	plugins = slices.DeleteFunc(plugins, func(p config.AdmissionPlugin) bool {
		return slices.Contains(live.Names(), p.Name) || p.Name == config.BuildDefaults || p.Name == config.BuildOverrides
	})
	for _, plugin := range plugins {
		server.Plugins = append(server.Plugins, kube.Plugin(plugin))
	}
	return adjustment, nil
}

// pluginConfigs returns the plugins' configurations, keyed by plugin name.
func pluginConfigs(plugins []config.AdmissionPlugin) map[string]apiserver.PluginConfig {
	configs := map[string]apiserver.PluginConfig{}
	for _, plugin := range plugins {
		configs[plugin.Name] = apiserver.PluginConfig{Disabled: plugin.Disabled, Content: plugin.Configuration}
	}
	return configs
}

// networks returns the networks of services' external addresses, and the platform's networks.
func (h *Host) networks() reach.Networks {
	resolver, _ := netip.ParseAddr(h.Node.DNSHost())
	networks := reach.Networks{
		External: h.Master.NetworkConfig.ExternalIPNetworkCIDRs, Ingress: h.Master.IngressNetwork(),
		Services: h.Master.ServiceNetworks(), Hosts: []netip.Addr{h.Address, h.SecondAddress}, Resolver: resolver,
	}
	for _, cluster := range h.Master.NetworkConfig.ClusterNetworks {
		if pods, err := netip.ParsePrefix(cluster.CIDR); err == nil {
			networks.Pods = append(networks.Pods, pods)
		}
	}
	return networks
}
