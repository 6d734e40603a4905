package config

import (
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
)

// Binding is an address that a component binds to.
type Binding struct {
	// Use is the purpose of the address, such as "API".
	Use string
	// Network is the protocol: "tcp" or "udp".
	Network string
	Address netip.AddrPort
	// Setting is the configuration key of the address, and File is the file that contains it.
	Setting, File string
}

// binding is a Binding whose address has not been parsed.
type binding struct{ use, network, address, setting, file string }

// Bindings returns the configured addresses that components bind to. They include the registry's
// address even if the registry is disabled, but not the router's ports. file is the configuration
// file that replaces the files in the data directory, or "".
func (c *Config) Bindings(file string) ([]Binding, error) {
	return parseBindings(append(c.masterBindings(file), c.nodeBindings(file)...))
}

// NodeBindings is like Bindings, but for a host that is not a master. On this host, the load
// balancer for the API servers listens on the API's port on the loopback address.
func (c *Config) NodeBindings(file string) ([]Binding, error) {
	_, port := c.Master.APIAddress()
	api := binding{"API of the masters", "tcp", joined("127.0.0.1", port), "servingInfo.bindAddress", fileOr(file, MasterFile(c.DataDir))}
	return parseBindings(append([]binding{api}, c.nodeBindings(file)...))
}

// MasterBindings is like Bindings, but for a host in a cluster with several masters. It adds the
// address of the host's load balancer for the API servers.
func (c *Config) MasterBindings(file string) ([]Binding, error) {
	api := binding{"API of all masters", "tcp", c.Node.Slipway.BalancerAddress, "slipway.balancerAddress", fileOr(file, NodeFile(c.DataDir))}
	return parseBindings(slices.Concat(c.masterBindings(file), c.nodeBindings(file), []binding{api}))
}

func (c *Config) masterBindings(file string) []binding {
	file = fileOr(file, MasterFile(c.DataDir))
	list := []binding{
		{"API", "tcp", joined(c.Master.APIAddress()), "servingInfo.bindAddress", file},
		{"etcd", "tcp", c.Master.EtcdAddress(), "etcdConfig.address", file},
		{"etcd peers", "tcp", c.Master.EtcdPeerAddress(), "etcdConfig.peerAddress", file},
		{"registry", "tcp", c.Master.Slipway.Registry.BindAddress, "slipway.registry.bindAddress", file},
	}
	if settings := c.Master.DNSConfig; settings != nil {
		for _, network := range []string{"tcp", "udp"} {
			list = append(list, binding{"DNS of the master", network, settings.BindAddress, "dnsConfig.bindAddress", file})
		}
	}
	return list
}

func (c *Config) nodeBindings(file string) []binding {
	file = fileOr(file, NodeFile(c.DataDir))
	list := []binding{
		{"kubelet", "tcp", joined(c.Node.KubeletAddress()), "servingInfo.bindAddress", file},
		{"proxy health", "tcp", c.Node.ProxyHealthAddress(), "proxyArguments.healthz-bind-address", file},
		{"DNS", "tcp", c.Node.DNSAddress(), "dnsBindAddress", file},
		{"DNS", "udp", c.Node.DNSAddress(), "dnsBindAddress", file},
	}
	if metrics := last(c.Node.ProxyArguments["metrics-bind-address"], ""); metrics != "" {
		list = append(list, binding{"proxy metrics", "tcp", metrics, "proxyArguments.metrics-bind-address", file})
	}
	return list
}

// fileOr returns file, or defaultFile if file is "".
func fileOr(file, defaultFile string) string {
	if file != "" {
		return file
	}
	return filepath.Clean(defaultFile)
}

func parseBindings(list []binding) (bindings []Binding, err error) {
	for _, b := range list {
		address, err := netip.ParseAddrPort(b.address)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: parse address %q: %w", b.file, b.setting, b.address, err)
		}
		bindings = append(bindings, Binding{Use: b.use, Network: b.network, Address: address, Setting: b.setting, File: b.file})
	}
	return bindings, nil
}

// ProxyHealthAddress returns the address on which the service proxy serves its health endpoint.
func (c *NodeConfig) ProxyHealthAddress() string {
	return last(c.ProxyArguments["healthz-bind-address"], "127.0.0.1:10256")
}

func joined(host string, port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }

// last returns the last value of an argument, which takes precedence over earlier values. If there
// is no value, it returns defaultValue.
func last(values []string, defaultValue string) string {
	if len(values) == 0 {
		return defaultValue
	}
	return values[len(values)-1]
}
