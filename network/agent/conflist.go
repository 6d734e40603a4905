package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/slipway-platform/slipway/internal/atomicfile"
	"github.com/slipway-platform/slipway/network/cni"
)

// networkName is the name of the network in the CNI configuration and in the path of the plugin's
// state directory.
const networkName = "slipway"

// LeaseDir returns the directory within the agent's state directory that holds the plugin's leases.
func LeaseDir(stateDir string) string { return cni.LeaseDir(stateDir, networkName) }

func (a *Agent) configFile() string { return filepath.Join(a.ConfDir, "10-slipway.conflist") }

func (a *Agent) pluginConfig(subnet netip.Prefix) cni.Config {
	return cni.Config{
		CNIVersion:   "1.1.0",
		Name:         networkName,
		Type:         cni.Type,
		Capabilities: map[string]bool{"portMappings": true, "bandwidth": true, "io.kubernetes.cri.pod-annotations": true},
		Bridge:       a.Bridge,
		MTU:          a.MTU,
		PodCIDR:      subnet,
		SecondCIDR:   a.DualStack.Subnet(subnet),
		StateDir:     a.StateDir,
		NFTTable:     a.NFTTable,
		PolicySocket: a.PolicySocket,
		Hairpin:      true,

		ClusterNetworks: a.clusterNetworks(),
	}
}

// clusterNetworks returns the networks of pods, services and the DNS server.
func (a *Agent) clusterNetworks() []netip.Prefix {
	networks := append(a.DualStack.Prefixes(), a.ServiceCIDR.Masked())
	if a.DualStack.Enabled() {
		networks = append(networks, a.SecondServiceCIDR.Masked())
	}
	if a.DNSIP.IsValid() {
		networks = append(networks, netip.PrefixFrom(a.DNSIP, a.DNSIP.BitLen()))
	}
	return networks
}

// writeConfig writes the CNI configuration atomically, and only if it has changed, because the
// container runtime watches the directory. The format is defined in section 1 of the CNI
// specification 1.1.
func (a *Agent) writeConfig(config cni.Config) error {
	list := struct {
		CNIVersion string       `json:"cniVersion"`
		Name       string       `json:"name"`
		Plugins    []cni.Config `json:"plugins"`
	}{config.CNIVersion, config.Name, []cni.Config{config}}
	list.Plugins[0].CNIVersion, list.Plugins[0].Name = "", "" // the list contains these fields
	data, err := json.MarshalIndent(list, "", "  ")
	if err != nil {
		return fmt.Errorf("encode CNI configuration: %w", err)
	}
	data = append(data, '\n')

	if present, err := os.ReadFile(a.configFile()); err == nil && bytes.Equal(present, data) {
		return nil
	}
	if err := os.MkdirAll(a.ConfDir, 0o755); err != nil {
		return fmt.Errorf("create directory for CNI configuration: %w", err)
	}
	return atomicfile.Write(a.configFile(), data, 0o644)
}
