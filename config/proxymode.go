package config

import "slices"

// proxyMode is the argument with the mode of the service proxy.
const proxyMode = "proxy-mode"

// userspace is the mode of OpenShift 3 in which a process accepts all connections to services.
// Kubernetes removed it in 1.26.
const userspace = "userspace"

// ProxyFlags returns the arguments of the service proxy that are flags of this version of
// Kubernetes.
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

// ignoredProxyMode lists the mode of the service proxy if Kubernetes has removed it.
func (c *NodeConfig) ignoredProxyMode() []string {
	if !slices.Contains(c.ProxyArguments[proxyMode], userspace) {
		return nil
	}
	return []string{nodeKind + ": proxyArguments." + proxyMode + " " + userspace + ", because Kubernetes has no such proxy"}
}
