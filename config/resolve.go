package config

import (
	"maps"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/slipway-platform/slipway/internal/dualstack"
)

// The methods in this file return typed values for settings that files express as text, or can
// express in more than one way. They must be called on a configuration that Load returned. For an
// invalid configuration, they return zero values.

// APIAddress returns the IP address and port on which the API server listens.
func (c *MasterConfig) APIAddress() (host string, port int) {
	return splitAddress(c.ServingInfo.BindAddress)
}

// RegistryAddress returns the IP address and port on which the registry listens.
func (c *MasterConfig) RegistryAddress() (host string, port int) {
	return splitAddress(c.Slipway.Registry.BindAddress)
}

// DNSPort returns the port of the master's DNS server, or 0 if the master has no DNS server that
// other hosts can connect to.
func (c *MasterConfig) DNSPort() int32 {
	if c.DNSConfig == nil {
		return 0
	}
	host, port := splitAddress(c.DNSConfig.BindAddress)
	if ip, err := netip.ParseAddr(host); err != nil || ip.IsLoopback() {
		return 0
	}
	return int32(port)
}

// EtcdAddress returns the host:port on which etcd serves clients.
func (c *MasterConfig) EtcdAddress() string { return c.EtcdConfig.Address }

// EtcdPeerAddress returns the host:port on which etcd serves its peers.
func (c *MasterConfig) EtcdPeerAddress() string { return c.EtcdConfig.PeerAddress }

// EtcdDirectory returns the absolute path of etcd's data directory.
func (c *MasterConfig) EtcdDirectory() string { return c.EtcdConfig.StorageDir }

// DualStack returns the pod networks: the IPv4 networks, and the IPv6 network if clusterNetworks
// contains one. It omits entries that are not networks.
func (c *MasterConfig) DualStack() (networks dualstack.Networks) {
	for _, entry := range c.NetworkConfig.ClusterNetworks {
		prefix, err := netip.ParsePrefix(entry.CIDR)
		network := dualstack.Network{Prefix: prefix, HostBits: int(entry.HostSubnetLength)}
		switch {
		case err != nil:
		case prefix.Addr().Is6():
			networks.IPv6 = network
		default:
			networks.IPv4 = append(networks.IPv4, network)
		}
	}
	return networks
}

// PodNetworks returns the address ranges of the IPv4 pod networks and, if configured, of the IPv6
// pod network.
func (c *MasterConfig) PodNetworks() []netip.Prefix { return c.DualStack().Prefixes() }

// ServiceNetworks returns the IPv4 service network and, if configured, the IPv6 service network.
func (c *MasterConfig) ServiceNetworks() (networks []netip.Prefix) {
	for _, text := range splitNetworks(c.NetworkConfig.ServiceNetworkCIDR) {
		network, _ := netip.ParsePrefix(text)
		networks = append(networks, network)
	}
	return networks
}

// ServiceNetwork returns the IPv4 service network.
func (c *MasterConfig) ServiceNetwork() netip.Prefix { return c.ServiceNetworks()[0] }

// SecondServiceNetwork returns the IPv6 service network, or an invalid prefix if there is none.
func (c *MasterConfig) SecondServiceNetwork() netip.Prefix {
	if networks := c.ServiceNetworks(); len(networks) > 1 {
		return networks[1]
	}
	return netip.Prefix{}
}

// splitNetworks splits a comma-separated list of networks. The result has at least one element.
func splitNetworks(list string) []string { return strings.Split(list, ",") }

// PublicHosts returns the hosts in the API server's public addresses, such as the host of a load
// balancer.
func (c *MasterConfig) PublicHosts() (hosts []string) {
	addresses := []string{c.MasterPublicURL}
	if c.OAuthConfig != nil {
		addresses = append(addresses, c.OAuthConfig.MasterPublicURL)
	}
	for _, address := range addresses {
		if parsed, err := url.Parse(address); err == nil && parsed.Hostname() != "" {
			hosts = append(hosts, parsed.Hostname())
		}
	}
	return hosts
}

// PublicAddress returns the host:port of masterPublicURL, or "".
func (c *MasterConfig) PublicAddress() string {
	public, err := url.Parse(c.MasterPublicURL)
	if err != nil || public.Hostname() == "" {
		return ""
	}
	port := public.Port()
	if port == "" {
		port = "443"
	}
	return net.JoinHostPort(public.Hostname(), port)
}

// CORSOrigins returns regular expressions for the origins whose pages can send requests to the API
// server. The first OpenShift versions wrote expressions without anchors. CORSOrigins adds anchors
// to these expressions so that they match only a whole host. Otherwise, they would also match
// longer host names.
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

// IngressNetwork returns the network that provides the addresses of LoadBalancer services. An
// invalid prefix means that no addresses are assigned.
func (c *MasterConfig) IngressNetwork() netip.Prefix {
	text := c.NetworkConfig.IngressIPNetworkCIDR
	if text == noIngressNetwork {
		return netip.Prefix{}
	}
	network, _ := netip.ParsePrefix(text)
	return network
}

// endsHost reports whether an expression anchors the end of the host. It ignores the colons in a
// scheme and in the (?: at the start of a group.
func endsHost(expression string) bool {
	if at := strings.LastIndex(expression, "//"); at >= 0 {
		expression = expression[at:]
	}
	return strings.ContainsAny(strings.ReplaceAll(expression, "(?:", "("), ":$")
}

// APIServiceIP returns the cluster IP of the `kubernetes` service, which is the first address in
// the service network.
func (c *MasterConfig) APIServiceIP() netip.Addr {
	return c.ServiceNetwork().Addr().Next()
}

// NodePorts returns the port range for NodePort services.
func (c *MasterConfig) NodePorts() utilnet.PortRange {
	ports, err := utilnet.ParsePortRange(c.KubernetesMasterConfig.ServicesNodePortRange)
	if err != nil {
		return utilnet.PortRange{}
	}
	return *ports
}

// AuditFile returns the path of the audit log, or "" if auditing is disabled.
func (c *MasterConfig) AuditFile() string {
	if !c.AuditConfig.Enabled {
		return ""
	}
	return c.AuditConfig.AuditFilePath
}

// OffersBundles reports whether the Ansible service broker offers services.
func (c *MasterConfig) OffersBundles() bool {
	return len(c.AnsibleServiceBrokerConfig.Namespaces) > 0 || len(c.AnsibleServiceBrokerConfig.Registries) > 0
}

// ServiceAccountKeys returns the key file that signs service account tokens, and the key files that
// verify them. There are several verification keys while the signing key is being rotated. ownKey
// and ownPublicKey are the host's key pair, which is used if serviceAccountConfig does not specify
// a private key.
func (c *MasterConfig) ServiceAccountKeys(ownKey, ownPublicKey string) (signing string, verifying []string) {
	configured := c.ServiceAccountConfig
	switch {
	case configured.PrivateKeyFile == "":
		return ownKey, append([]string{ownPublicKey}, configured.PublicKeyFiles...)
	case len(configured.PublicKeyFiles) == 0:
		// The private key file also contains the public key.
		return configured.PrivateKeyFile, []string{configured.PrivateKeyFile}
	}
	return configured.PrivateKeyFile, configured.PublicKeyFiles
}

// ImportRegistries returns the registries in imagePolicyConfig.allowedRegistriesForImport whose
// names do not contain a wildcard.
func (c *MasterConfig) ImportRegistries() (names []string) {
	if allowed := c.ImagePolicyConfig.AllowedRegistriesForImport; allowed != nil {
		for _, location := range *allowed {
			if !strings.ContainsAny(location.DomainName, "*?[") {
				names = append(names, location.DomainName)
			}
		}
	}
	return names
}

// Networks returns the allowed networks.
func (o *Outbound) Networks() (networks []netip.Prefix) {
	for _, text := range o.AllowedNetworks {
		if network, err := netip.ParsePrefix(text); err == nil {
			networks = append(networks, network.Masked())
		}
	}
	return networks
}

// PodEvictionTimeout returns how long pods stay on a node that is not ready before they are
// evicted.
func (c *MasterConfig) PodEvictionTimeout() time.Duration {
	timeout, _ := time.ParseDuration(c.KubernetesMasterConfig.PodEvictionTimeout)
	return timeout
}

// KubeletAddress returns the IP address and port on which the kubelet listens.
func (c *NodeConfig) KubeletAddress() (host string, port int) {
	return splitAddress(c.ServingInfo.BindAddress)
}

// DNSAddress returns the host:port of the node's DNS server for pods. It is dnsBindAddress if pods
// can connect to that address, and otherwise the default address. OpenShift 3's files specify
// 127.0.0.1:53 because its DNS server was behind dnsmasq, which Slipway does not use.
func (c *NodeConfig) DNSAddress() string {
	address, err := netip.ParseAddrPort(c.DNSBindAddress)
	if err == nil && (address.Addr().IsLoopback() || address.Addr().IsUnspecified()) {
		return dnsAddress
	}
	return c.DNSBindAddress
}

// ResolverIP returns the name server for pods' resolv.conf: dnsIP, or the node's DNS server if
// dnsIP is 0.0.0.0, which means "this node" in OpenShift 3.
func (c *NodeConfig) ResolverIP() string {
	if ip, err := netip.ParseAddr(c.DNSIP); err == nil && !ip.IsUnspecified() {
		return ip.String()
	}
	return c.DNSHost()
}

// DNSHost returns the IP address of the node's DNS server for pods.
func (c *NodeConfig) DNSHost() string {
	host, _ := splitAddress(c.DNSAddress())
	return host
}

// PortsForPods returns the TCP ports of this host that pods connect to: the kubelet's port and, on
// a master, the ports of the API server and the registry.
func (c *Config) PortsForPods(isMaster bool) []int {
	_, kubelet := c.Node.KubeletAddress()
	if !isMaster {
		return []int{kubelet}
	}
	_, api := c.Master.APIAddress()
	_, registry := c.Master.RegistryAddress()
	return []int{kubelet, api, registry}
}

// RouterEnvironment returns the router's environment variables. If pods have IPv6 addresses, the
// router also listens on IPv6 addresses, unless the administrator has set the mode.
func (c *Config) RouterEnvironment() map[string]string {
	const mode = "ROUTER_IP_V4_V6_MODE"
	environment := maps.Clone(c.Node.Slipway.Router.Environment)
	if c.Master.DualStack().Enabled() && environment[mode] == "" {
		if environment == nil {
			environment = map[string]string{}
		}
		environment[mode] = "v4v6"
	}
	return environment
}

// Nameservers returns the host:port of each recursive name server that the node's DNS server uses.
// An empty list means that it uses the name servers in the machine's /etc/resolv.conf.
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

// RecursiveResolvConf returns the path of the file that contains the name servers for names outside
// the cluster (dnsRecursiveResolvConf). dnsNameservers takes precedence over this file. If the file
// does not exist, as on a host without OpenShift 3, RecursiveResolvConf returns "", and the node's
// DNS server uses the machine's /etc/resolv.conf.
func (c *NodeConfig) RecursiveResolvConf() string { return existing(c.DNSRecursiveResolvConf) }

// KubeletClientCA returns the path of the file with additional CAs for the kubelet's clients
// (servingInfo.clientCA), or "" if the file does not exist.
func (c *NodeConfig) KubeletClientCA() string { return existing(c.ServingInfo.ClientCA) }

// existing returns path, or "" if path is not a file.
func existing(path string) string {
	if info, err := os.Stat(path); path == "" || err != nil || info.IsDir() {
		return ""
	}
	return path
}

// ProvisionsJenkins reports whether a Jenkins server is created for each project with pipelines
// (jenkinsPipelineConfig.autoProvisionEnabled). By default, no Jenkins server is created, because
// Slipway itself runs Jenkinsfiles.
func (c *MasterConfig) ProvisionsJenkins() bool {
	enabled := c.JenkinsPipelineConfig.AutoProvisionEnabled
	return enabled != nil && *enabled
}

// VolumePluginDir returns the FlexVolume driver directory, which the volume-plugin-dir kubelet
// argument specifies.
func (c *NodeConfig) VolumePluginDir() string { return c.kubeletArgument("volume-plugin-dir") }

// ManifestDir returns the absolute path of the static pod file or directory, and its polling
// interval. The path is empty if static pods are not configured. The kubelet argument
// pod-manifest-path takes precedence over podManifestConfig.
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

// CacheTTLs returns how long the kubelet caches the results of a client's authentication and
// authorization. nil means Kubernetes' default.
func (c *NodeConfig) CacheTTLs() (authentication, authorization *time.Duration) {
	read := func(text string) *time.Duration {
		ttl, err := time.ParseDuration(text)
		if err != nil {
			return nil
		}
		return &ttl
	}
	return read(c.AuthConfig.AuthenticationCacheTTL), read(c.AuthConfig.AuthorizationCacheTTL)
}

// SyncPeriod returns the maximum time until the node repairs packet filter rules that another
// program has changed (iptablesSyncPeriod).
func (c *NodeConfig) SyncPeriod() time.Duration {
	const usual = 30 * time.Second
	if period, err := time.ParseDuration(c.IPTablesSyncPeriod); err == nil && period > 0 {
		return period
	}
	return usual
}

func (c *NodeConfig) kubeletArgument(name string) string { return last(c.KubeletArguments[name], "") }

func splitAddress(address string) (host string, port int) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0
	}
	port, _ = strconv.Atoi(text)
	return host, port
}

// GroupQuota returns the limit, in bytes, on the data that pods with the same FSGroup store in
// emptyDir volumes. It returns 0 if there is no limit.
func (c *NodeConfig) GroupQuota() int64 {
	if quota := c.VolumeConfig.LocalQuota.PerFSGroup; quota != nil {
		return quota.Value()
	}
	return 0
}
