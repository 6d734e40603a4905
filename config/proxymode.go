package config

import "slices"

// proxyMode is the argument that sets the service proxy's mode.
const proxyMode = "proxy-mode"

// userspace is the OpenShift 3 mode in which the proxy process accepts all connections to services.
// Kubernetes removed it in 1.26.
const userspace = "userspace"

// ProxyFlags returns the service proxy arguments that exist as flags in this Kubernetes version.
func (c *NodeConfig) ProxyFlags() map[string][]string {
	flags := map[string][]string{}
	for name, values := range c.ProxyArguments {
		if name == proxyMode {
			values = slices.DeleteFunc(slices.Clone(values), func(mode string) bool { return mode == userspace })
		}
		if len(values) > 0 {
			flags[name] = values
		}
	}
	return flags
}

// ignoredProxyMode returns the service proxy's mode if Kubernetes has removed that mode.
func (c *NodeConfig) ignoredProxyMode() []string {
	if !slices.Contains(c.ProxyArguments[proxyMode], userspace) {
		return nil
	}
	return []string{nodeKind + ": proxyArguments." + proxyMode + " " + userspace + ", because Kubernetes no longer has this mode"}
}
