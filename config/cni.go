package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/slipway-platform/slipway/internal/networkplugin"
)

// CNI arguments of OpenShift 3's kubelet. In Slipway, they apply to the container runtime.
const (
	networkPlugin = "network-plugin"
	cniConfDir    = "cni-conf-dir"
	cniBinDir     = "cni-bin-dir"
)

// HasOtherNetwork reports whether an administrator's CNI plugin connects the pods instead of
// Slipway's network.
func (c *MasterConfig) HasOtherNetwork() bool {
	return c.NetworkConfig.NetworkPluginName == networkplugin.CNI
}

// CNIDirectories returns the configuration directory of an administrator's CNI plugin and its
// program directories. The defaults are the same as in OpenShift 3's kubelet.
func (c *NodeConfig) CNIDirectories() (configuration string, programs []string) {
	configuration = last(c.KubeletArguments[cniConfDir], "/etc/cni/net.d")
	return configuration, strings.Split(last(c.KubeletArguments[cniBinDir], "/opt/cni/bin"), ",")
}

// KubeletFlags returns the kubelet arguments that exist as flags in this Kubernetes version.
func (c *NodeConfig) KubeletFlags() map[string][]string {
	flags := map[string][]string{}
	for name, values := range c.KubeletArguments {
		if !slices.Contains([]string{networkPlugin, cniConfDir, cniBinDir}, name) {
			flags[name] = values
		}
	}
	return flags
}

// cni validates the kubelet's CNI arguments.
func (c *checker) cni(n *NodeConfig) {
	for i, name := range n.KubeletArguments[networkPlugin] {
		if name != networkplugin.CNI {
			c.fail(indexed("kubeletArguments."+networkPlugin, i), "is %q, must be %s; "+
				"networkConfig.networkPluginName of master-config.yaml names the network plugin", name, networkplugin.CNI)
		}
	}
	for _, name := range []string{cniConfDir, cniBinDir} {
		for i, value := range n.KubeletArguments[name] {
			for path := range strings.SplitSeq(value, ",") {
				c.absolute(indexed("kubeletArguments."+name, i), path)
			}
		}
	}
}

// ignoredCNI returns the CNI arguments that have no effect with Slipway's own network.
func (c *Config) ignoredCNI() (list []string) {
	for _, name := range []string{cniConfDir, cniBinDir} {
		if len(c.Node.KubeletArguments[name]) > 0 && !c.Master.HasOtherNetwork() {
			list = append(list, fmt.Sprintf("%s: kubeletArguments.%s, because networkConfig.networkPluginName is not %s", nodeKind, name, networkplugin.CNI))
		}
	}
	return list
}
