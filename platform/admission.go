package platform

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"

	"github.com/slipway-platform/slipway/admission/pod"
	"github.com/slipway-platform/slipway/admission/reach"
	"github.com/slipway-platform/slipway/admission/unenforced"
	"github.com/slipway-platform/slipway/apiserver"
	"github.com/slipway-platform/slipway/config"
	"github.com/slipway-platform/slipway/controller/serviceca"
	"github.com/slipway-platform/slipway/internal/atomicfile"
	"github.com/slipway-platform/slipway/kube"
)

// admission hands the configured plug-ins to the API server: of ours what can change while it runs, of the others their configurations in a file
// of the form that it reads.
func (h *host) admission(server *kube.APIServer) error {
	plugins, err := h.Master.AdmissionPlugins()
	if err != nil {
		return err
	}
	live := apiserver.MakeLive(server.Features, pluginConfigs(plugins))
	var keys []string
	for _, name := range live.Names() {
		keys = append(keys, pluginKey(name))
	}
	h.adjust(func(next *config.Config) (func(), error) {
		plugins, err := next.Master.AdmissionPlugins()
		if err != nil {
			return nil, err
		}
		return live.Prepare(pluginConfigs(plugins))
	}, keys...)
	plugins = slices.DeleteFunc(plugins, func(p config.AdmissionPlugin) bool {
		return slices.Contains(live.Names(), p.Name) || p.Name == config.BuildDefaults || p.Name == config.BuildOverrides
	})
	type entry struct {
		Name          string          `json:"name"`
		Configuration json.RawMessage `json:"configuration"`
	}
	var entries []entry
	for _, plugin := range plugins {
		switch {
		case plugin.Disabled:
			server.DisabledPlugins = append(server.DisabledPlugins, plugin.Name)
			continue
		case plugin.Configuration != nil:
			entries = append(entries, entry{plugin.Name, plugin.Configuration})
		}
		server.EnabledPlugins = append(server.EnabledPlugins, plugin.Name)
	}
	content, err := json.Marshal(map[string]any{
		"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration", "plugins": entries,
	})
	if err != nil {
		return fmt.Errorf("write configuration of admission: %w", err)
	}
	server.AdmissionFile = filepath.Join(h.runDir(), "admission.json")
	return atomicfile.Write(server.AdmissionFile, content, 0o600)
}

// pluginKey is the setting that configures a plug-in.
func pluginKey(name string) string { return "admissionConfig.pluginConfig." + name }

// pluginConfigs are what plug-ins of ours are told.
func pluginConfigs(plugins []config.AdmissionPlugin) map[string]apiserver.PluginConfig {
	configs := map[string]apiserver.PluginConfig{}
	for _, plugin := range plugins {
		configs[plugin.Name] = apiserver.PluginConfig{Disabled: plugin.Disabled, Content: plugin.Configuration}
	}
	return configs
}

// checks are the admission plug-ins that belong to no API group.
func (h *host) checks() []apiserver.Feature {
	return []apiserver.Feature{
		pod.Feature(),
		pod.AuthorityFeature(serviceca.BundleMap, serviceca.BundleKey),
		reach.Feature(h.networks()),
		unenforced.Feature(unenforcedResources()),
	}
}

// networks are the addresses that services may have, and those that only the platform has.
func (h *host) networks() reach.Networks {
	networks := reach.Networks{
		External: h.Master.NetworkConfig.ExternalIPNetworkCIDRs, Ingress: h.Master.IngressNetwork(),
		Platform: []reach.Network{{Prefix: h.Master.ServiceNetwork(), Name: "the service network"}},
	}
	for _, entry := range h.Master.NetworkConfig.ClusterNetworks {
		if pods, err := netip.ParsePrefix(entry.CIDR); err == nil {
			networks.Platform = append(networks.Platform, reach.Network{Prefix: pods, Name: "the pod network"})
		}
	}
	for name, text := range map[string]string{"the network of the nodes": h.address.String(), "the network of the DNS server": h.dnsHost()} {
		if address, err := netip.ParseAddr(text); err == nil {
			networks.Platform = append(networks.Platform, reach.Network{Prefix: netip.PrefixFrom(address, address.BitLen()), Name: name})
		}
	}
	return networks
}
