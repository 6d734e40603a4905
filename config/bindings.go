package config

import (
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"strconv"
)

// Binding is an address that a component binds.
type Binding struct {
	// Use is the purpose, such as "API".
	Use string
	// Network is "tcp" or "udp".
	Network string
	Address netip.AddrPort
	// Setting is the key of the address, and File the file that contains it.
	Setting, File string
}

// Bindings returns the addresses that the components bind. file is the configuration file that
// replaces the files of the data directory, or "".
func (c *Config) Bindings(file string) ([]Binding, error) {
	master, node := filepath.Clean(MasterFile(c.DataDir)), filepath.Clean(NodeFile(c.DataDir))
	if file != "" {
		master, node = file, file
	}
	type binding struct{ use, network, address, setting, file string }
	list := []binding{
		{"API", "tcp", joined(c.Master.APIAddress()), "servingInfo.bindAddress", master},
		{"etcd", "tcp", c.Master.EtcdAddress(), "etcdConfig.address", master},
		{"etcd peers", "tcp", c.Master.EtcdPeerAddress(), "etcdConfig.peerAddress", master},
		{"registry", "tcp", c.Master.Slipway.Registry.BindAddress, "slipway.registry.bindAddress", master},
		{"kubelet", "tcp", joined(c.Node.KubeletAddress()), "servingInfo.bindAddress", node},
		{"proxy health", "tcp", c.Node.ProxyHealthAddress(), "proxyArguments.healthz-bind-address", node},
		{"DNS", "tcp", c.Node.DNSAddress(), "dnsBindAddress", node},
		{"DNS", "udp", c.Node.DNSAddress(), "dnsBindAddress", node},
	}
	if settings := c.Master.DNSConfig; settings != nil {
		for _, network := range []string{"tcp", "udp"} {
			list = append(list, binding{"DNS of the master", network, settings.BindAddress, "dnsConfig.bindAddress", master})
		}
	}
	if metrics := last(c.Node.ProxyArguments["metrics-bind-address"], ""); metrics != "" {
		list = append(list, binding{"proxy metrics", "tcp", metrics, "proxyArguments.metrics-bind-address", node})
	}
	var bindings []Binding
	for _, b := range list {
		address, err := netip.ParseAddrPort(b.address)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: read address %q: %w", b.file, b.setting, b.address, err)
		}
		bindings = append(bindings, Binding{Use: b.use, Network: b.network, Address: address, Setting: b.setting, File: b.file})
	}
	return bindings, nil
}

// ProxyHealthAddress returns the address on which the service proxy serves its health.
func (c *NodeConfig) ProxyHealthAddress() string {
	return last(c.ProxyArguments["healthz-bind-address"], "127.0.0.1:10256")
}

func joined(host string, port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }

// last returns the last value of an argument, which is the one that applies, or a default.
func last(values []string, defaultValue string) string {
	if len(values) == 0 {
		return defaultValue
	}
	return values[len(values)-1]
}
