package config

import (
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// The methods of this file give the plain value of settings that the files spell as texts, or in
// more than one way. They are for a configuration that Load returned; on one that was never
// validated they return zero values.

// APIAddress is where the API server listens: an IP address and a port.
func (c *MasterConfig) APIAddress() (host string, port int) {
	return splitAddress(c.ServingInfo.BindAddress)
}

// EtcdAddress is the host:port that etcd serves clients on.
func (c *MasterConfig) EtcdAddress() string { return c.EtcdConfig.Address }

// EtcdPeerAddress is the host:port that etcd serves its peers on.
func (c *MasterConfig) EtcdPeerAddress() string { return c.EtcdConfig.PeerAddress }

// EtcdDirectory is the absolute path of etcd's data.
func (c *MasterConfig) EtcdDirectory() string { return c.EtcdConfig.StorageDir }

// ClusterNetwork is the pods' network and the number of address bits that each host gets of it: 9
// means a /23 per host. Of several cluster networks it is the first.
func (c *MasterConfig) ClusterNetwork() (network netip.Prefix, hostBits int) {
	if len(c.NetworkConfig.ClusterNetworks) == 0 {
		return netip.Prefix{}, 0
	}
	first := c.NetworkConfig.ClusterNetworks[0]
	network, _ = netip.ParsePrefix(first.CIDR)
	return network, int(first.HostSubnetLength)
}

// ServiceNetwork is the services' network.
func (c *MasterConfig) ServiceNetwork() netip.Prefix {
	network, _ := netip.ParsePrefix(c.NetworkConfig.ServiceNetworkCIDR)
	return network
}

// CORSOrigins are regular expressions of the origins whose pages may ask the API server. One that says neither where a host begins nor where it ends, as
// those of OpenShift's first versions, stands for a whole host: it would let in every longer one.
func (c *MasterConfig) CORSOrigins() (expressions []string) {
	for _, expression := range c.CORSAllowedOrigins {
		if !strings.Contains(expression, "//") && !strings.Contains(expression, "^") {
			expression = "//(?:" + expression + ")(:|$)"
		} else if !endsHost(expression) {
			expression = "(?:" + expression + ")(:|$)"
		}
		expressions = append(expressions, expression)
	}
	return expressions
}

// IngressNetwork is where services of type LoadBalancer get addresses from; one that is not valid says that they get none.
func (c *MasterConfig) IngressNetwork() netip.Prefix {
	text := c.NetworkConfig.IngressIPNetworkCIDR
	if text == noIngressNetwork {
		return netip.Prefix{}
	}
	network, _ := netip.ParsePrefix(text)
	return network
}

// endsHost says whether an expression of origins says where a host ends. The colons of a scheme and of a group say nothing of that.
func endsHost(expression string) bool {
	if at := strings.LastIndex(expression, "//"); at >= 0 {
		expression = expression[at:]
	}
	return strings.ContainsAny(strings.ReplaceAll(expression, "(?:", "("), ":$")
}

// APIServiceIP is the address of the service `kubernetes`: the first one of the service network.
func (c *MasterConfig) APIServiceIP() netip.Addr {
	return c.ServiceNetwork().Addr().Next()
}

// NodePorts is the port range of NodePort services.
func (c *MasterConfig) NodePorts() utilnet.PortRange {
	ports, err := utilnet.ParsePortRange(c.KubernetesMasterConfig.ServicesNodePortRange)
	if err != nil {
		return utilnet.PortRange{}
	}
	return *ports
}

// PodEvictionTimeout is how long pods stay bound to a node that is not ready.
func (c *MasterConfig) PodEvictionTimeout() time.Duration {
	timeout, _ := time.ParseDuration(c.KubernetesMasterConfig.PodEvictionTimeout)
	return timeout
}

// KubeletAddress is where the kubelet listens: an IP address and a port.
func (c *NodeConfig) KubeletAddress() (host string, port int) {
	return splitAddress(c.ServingInfo.BindAddress)
}

// DNSAddress is the host:port that pods find the node's DNS server on. It is dnsBindAddress, except
// where that is not an address that a pod can reach: OpenShift 3 files bind 127.0.0.1:53 behind a
// dnsmasq that we do not have, so a loopback or unspecified address gives the default one.
func (c *NodeConfig) DNSAddress() string {
	address, err := netip.ParseAddrPort(c.DNSBindAddress)
	if err == nil && (address.Addr().IsLoopback() || address.Addr().IsUnspecified()) {
		return dnsAddress
	}
	return c.DNSBindAddress
}

// ResolverIP is the name server in the resolv.conf of pods: dnsIP or, where that is unspecified
// (0.0.0.0, OpenShift 3's way to say "this node"), the node's DNS server.
func (c *NodeConfig) ResolverIP() string {
	if ip, err := netip.ParseAddr(c.DNSIP); err == nil && !ip.IsUnspecified() {
		return ip.String()
	}
	host, _ := splitAddress(c.DNSAddress())
	return host
}

// Nameservers are the recursive name servers that the node's DNS server asks, each as host:port;
// empty means those of the machine's /etc/resolv.conf.
func (c *NodeConfig) Nameservers() []string {
	var list []string
	for _, server := range c.DNSNameservers {
		if _, err := netip.ParseAddr(server); err == nil {
			server = net.JoinHostPort(server, "53")
		}
		list = append(list, server)
	}
	return list
}

// VolumePluginDir is the folder of FlexVolume drivers, kubelet's argument volume-plugin-dir.
func (c *NodeConfig) VolumePluginDir() string { return c.kubeletArgument("volume-plugin-dir") }

// ManifestDir is the folder or file of static pods, absolute, and how often it is read; empty
// when there is none. Kubelet's argument pod-manifest-path precedes podManifestConfig.
func (c *NodeConfig) ManifestDir() (path string, interval time.Duration) {
	const usual = 20 * time.Second
	if path := c.kubeletArgument("pod-manifest-path"); path != "" {
		return path, usual
	}
	if c.PodManifestConfig == nil {
		return "", 0
	}
	return c.PodManifestConfig.Path, time.Duration(c.PodManifestConfig.FileCheckIntervalSeconds) * time.Second
}

// kubeletArgument is the last value of an argument of the kubelet, which is the one that counts.
func (c *NodeConfig) kubeletArgument(name string) string {
	values := c.KubeletArguments[name]
	if len(values) == 0 {
		return ""
	}
	return values[len(values)-1]
}

func splitAddress(address string) (host string, port int) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0
	}
	port, _ = strconv.Atoi(text)
	return host, port
}
