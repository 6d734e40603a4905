package config

import (
	"math/big"
	"net/netip"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	legacyv1 "github.com/openshift/api/legacyconfig/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/validation"
	cliflag "k8s.io/component-base/cli/flag"

	"github.com/slipway-platform/slipway/internal/dualstack"
	"github.com/slipway-platform/slipway/internal/networkplugin"
)

// validate returns problems with the values in a configuration. Defaults must have been applied.
func (c *Config) validate() Problems {
	master, node := &checker{document: c.master}, &checker{document: c.node}
	networks := master.master(c.Master)
	node.node(c.Node)
	if ip, err := netip.ParseAddr(c.Node.ResolverIP()); err == nil {
		if network, ok := overlaps(netip.PrefixFrom(ip, ip.BitLen()), networks[:len(networks)-1]); ok {
			node.fail("dnsIP", "is %q, which is in the cluster network %s; "+
				"choose an address outside it", ip, network)
		}
	}
	ports := checkPorts([]claim{
		{c.master, masterKind, "servingInfo.bindAddress", c.Master.ServingInfo.BindAddress},
		{c.master, masterKind, "etcdConfig.address", c.Master.EtcdConfig.Address},
		{c.master, masterKind, "etcdConfig.peerAddress", c.Master.EtcdConfig.PeerAddress},
		{c.node, nodeKind, "servingInfo.bindAddress", c.Node.ServingInfo.BindAddress},
		{c.node, nodeKind, "dnsBindAddress", c.Node.DNSAddress()},
	})
	if mtu := c.Node.NetworkConfig.MTU; c.Master.DualStack().Enabled() && mtu != 0 && mtu < minIPv6MTU {
		node.fail("networkConfig.mtu", "is %d, but pods have IPv6 addresses, which need at least %d", mtu, minIPv6MTU)
	}
	master.etcdClient(c)
	return append(append(master.problems, node.problems...), ports...)
}

// minIPv6MTU is the minimum MTU for IPv6 (RFC 8200, 5).
const minIPv6MTU = 1280

// master validates a MasterConfig. It returns the pod networks, followed by the service networks.
func (c *checker) master(m *MasterConfig) []netip.Prefix {
	c.listen("servingInfo.bindAddress", m.ServingInfo.BindAddress)
	c.network("servingInfo.bindNetwork", m.ServingInfo.BindNetwork, m.ServingInfo.BindAddress)
	c.tls("servingInfo", &m.ServingInfo.ServingInfo)
	c.registry(&m.Slipway.Registry)
	c.url("masterPublicURL", m.MasterPublicURL)
	for i, expression := range m.CORSAllowedOrigins {
		if _, err := regexp.Compile(expression); err != nil || expression == "" {
			c.fail(indexed("corsAllowedOrigins", i), "is %q, must be a regular expression "+
				"such as //pages\\.example\\.com(:|$)", expression)
		}
	}
	c.hostPort("etcdConfig.address", m.EtcdConfig.Address)
	c.hostPort("etcdConfig.peerAddress", m.EtcdConfig.PeerAddress)
	c.listen("etcdConfig.servingInfo.bindAddress", m.EtcdConfig.ServingInfo.BindAddress)
	c.listen("etcdConfig.peerServingInfo.bindAddress", m.EtcdConfig.PeerServingInfo.BindAddress)
	if m.DNSConfig != nil {
		c.listen("dnsConfig.bindAddress", m.DNSConfig.BindAddress)
		c.network("dnsConfig.bindNetwork", m.DNSConfig.BindNetwork, m.DNSConfig.BindAddress)
	}

	kube := &m.KubernetesMasterConfig
	if ip := c.ip("kubernetesMasterConfig.masterIP", kube.MasterIP); ip.IsValid() && (ip.IsUnspecified() || ip.IsLoopback()) {
		c.fail("kubernetesMasterConfig.masterIP", "is %q, which pods and other hosts cannot reach; "+
			"set an address of this machine, or omit the key to detect it", kube.MasterIP)
	}
	if _, err := utilnet.ParsePortRange(kube.ServicesNodePortRange); err != nil {
		c.fail("kubernetesMasterConfig.servicesNodePortRange",
			"is %q, must be a range of ports such as 30000-32767", kube.ServicesNodePortRange)
	}
	c.duration("kubernetesMasterConfig.podEvictionTimeout", kube.PodEvictionTimeout)
	c.arguments("kubernetesMasterConfig.apiServerArguments", kube.APIServerArguments)
	c.arguments("kubernetesMasterConfig.controllerArguments", kube.ControllerArguments)
	c.arguments("kubernetesMasterConfig.schedulerArguments", kube.SchedulerArguments)

	c.domain("routingConfig.subdomain", m.RoutingConfig.Subdomain)
	for i, name := range m.TemplateServiceBrokerConfig.TemplateNamespaces {
		if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
			c.fail(indexed("templateServiceBrokerConfig.templateNamespaces", i), "is %q, must be the name of a project", name)
		}
	}
	for key, name := range map[string]string{"templateNamespace": m.JenkinsPipelineConfig.TemplateNamespace, "serviceName": m.JenkinsPipelineConfig.ServiceName} {
		if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
			c.fail("jenkinsPipelineConfig."+key, "is %q, must be a name such as jenkins", name)
		}
	}
	c.ansibleBroker(&m.AnsibleServiceBrokerConfig)
	c.audit(m)
	c.oauth(m)
	c.exclusive("authConfig.oauthMetadataFile", m.AuthConfig.OAuthMetadataFile != "", "oauthConfig", m.OAuthConfig != nil)
	for name, plugin := range m.AdmissionConfig.PluginConfig {
		if plugin != nil {
			key := "admissionConfig.pluginConfig." + name
			c.exclusive(key+".configuration", plugin.Configuration.Raw != nil, key+".location", plugin.Location != "")
		}
	}
	for i, network := range m.Slipway.Outbound.AllowedNetworks {
		c.anyCIDR(indexed("slipway.outbound.allowedNetworks", i), network)
	}
	for i, host := range m.Slipway.Outbound.AllowedHosts {
		if strings.ContainsAny(host, "/*@ ") || host == "" {
			c.fail(indexed("slipway.outbound.allowedHosts", i),
				"is %q, must be a host such as registry.example.com:5000", host)
		}
	}
	if lifetime := m.Slipway.CertificateLifetime.Duration; lifetime < time.Hour {
		c.fail("slipway.certificateLifetime", "is %s, must be at least 1h", lifetime)
	}
	if lifetime := m.Slipway.CALifetime.Duration; lifetime < m.Slipway.CertificateLifetime.Duration {
		c.fail("slipway.caLifetime", "is %s, must not be shorter than certificateLifetime, %s",
			lifetime, m.Slipway.CertificateLifetime.Duration)
	}
	if interval := m.Slipway.Descheduler.Interval.Duration; interval < time.Second {
		c.fail("slipway.descheduler.interval", "is %s, must be at least 1s", interval)
	}
	c.etcdMaintenance(&m.Slipway)
	return c.networks(m)
}

// tls validates the TLS version and ciphers for connections from clients, and the certificates for
// specific host names.
func (c *checker) tls(at string, s *legacyv1.ServingInfo) {
	if _, err := cliflag.TLSVersion(s.MinTLSVersion); err != nil {
		c.fail(at+".minTLSVersion", "is %q, must be one of %s", s.MinTLSVersion, strings.Join(cliflag.TLSPossibleVersions(), ", "))
	}
	if _, err := cliflag.TLSCipherSuites(s.CipherSuites); err != nil {
		c.fail(at+".cipherSuites", "cannot be used: %v", err)
	}
	for i, cert := range s.NamedCertificates {
		name := indexed(at+".namedCertificates", i)
		c.required(name+".certFile", cert.CertFile)
		c.required(name+".keyFile", cert.KeyFile)
		if len(cert.Names) == 0 {
			c.fail(name+".names", "is missing; name the hosts that the certificate is for")
		}
	}
}

func (c *checker) audit(m *MasterConfig) {
	audit := &m.AuditConfig
	c.notNegative("auditConfig.maximumFileRetentionDays", audit.MaximumFileRetentionDays)
	c.notNegative("auditConfig.maximumRetainedFiles", audit.MaximumRetainedFiles)
	c.notNegative("auditConfig.maximumFileSizeMegabytes", audit.MaximumFileSizeMegabytes)
	c.exclusive("auditConfig.policyFile", audit.PolicyFile != "", "auditConfig.policyConfiguration", audit.PolicyConfiguration.Raw != nil)
}

func (c *checker) url(key, value string) {
	if value == "" {
		return
	}
	if u, err := url.Parse(value); err != nil || u.Scheme != "https" || u.Hostname() == "" || u.User != nil {
		c.fail(key, "is %q, must be a URL such as https://master.example.com:8443", value)
	}
}

// networks validates that the networks are large enough and do not overlap.
func (c *checker) networks(m *MasterConfig) []netip.Prefix {
	n := &m.NetworkConfig
	if !slices.Contains(networkplugin.Names(), n.NetworkPluginName) {
		c.fail("networkConfig.networkPluginName", "is %q; must be one of %s", n.NetworkPluginName, strings.Join(networkplugin.Names(), ", "))
	}
	if port := n.VXLANPort; port > 65535 {
		c.fail("networkConfig.vxlanPort", "is %d, must be between 1 and 65535", port)
	}
	first := n.ClusterNetworks[0]
	// OpenShift 3.9 and later write both the old and the new key, with the same value.
	if old := n.DeprecatedClusterNetworkCIDR; old != "" && old != first.CIDR {
		c.fail("networkConfig.clusterNetworkCIDR",
			"is %q, but clusterNetworks begins with %q; keep only clusterNetworks", old, first.CIDR)
	}
	if old := n.DeprecatedHostSubnetLength; old != 0 && old != first.HostSubnetLength {
		c.fail("networkConfig.hostSubnetLength",
			"is %d, but clusterNetworks begins with %d; keep only clusterNetworks", old, first.HostSubnetLength)
	}
	var prefixes []netip.Prefix
	second := -1 // index of the IPv6 entry
	for i, entry := range n.ClusterNetworks {
		at := indexed("networkConfig.clusterNetworks", i)
		cidr, bits := at+".cidr", at+".hostSubnetLength"
		if _, ok := c.document.lines["networkConfig.clusterNetworks"]; !ok {
			cidr, bits = "networkConfig.clusterNetworkCIDR", "networkConfig.hostSubnetLength"
		}
		switch isIPv6 := isIPv6(entry.CIDR); {
		case isIPv6 && i == 0:
			c.fail(cidr, "is %q, must be an IPv4 network; pods need IPv4 addresses, so list the IPv6 network second", entry.CIDR)
			continue
		case isIPv6 && second >= 0:
			c.fail(cidr, "is %q, but %q is also an IPv6 network; keep one of them", entry.CIDR, n.ClusterNetworks[second].CIDR)
			continue
		case isIPv6:
			second = i
			c.secondNetwork(cidr, bits, m.DualStack())
		}
		prefixes = append(prefixes, c.clusterNetwork(cidr, bits, entry.CIDR, entry.HostSubnetLength, prefixes))
	}

	services := c.services(m, prefixes)
	c.ingress(n.IngressIPNetworkCIDR, append(prefixes, services))
	for i, external := range n.ExternalIPNetworkCIDRs {
		c.cidr(indexed("networkConfig.externalIPNetworkCIDRs", i), strings.TrimPrefix(external, "!"))
	}
	return append(prefixes, services)
}

// ingress validates the network that provides the addresses of LoadBalancer services: its size, and
// that it does not overlap any other network.
func (c *checker) ingress(value string, prefixes []netip.Prefix) {
	const key = "networkConfig.ingressIPNetworkCIDR"
	if value == noIngressNetwork || value == "" {
		return
	}
	network := c.cidr(key, value)
	if !network.IsValid() {
		return
	}
	if network.Bits() < 8 || network.Bits() > 30 {
		c.fail(key, "is %q, must be between a /8 and a /30, or %s for none", network, noIngressNetwork)
	}
	if other, ok := overlaps(network, prefixes); ok {
		c.fail(key, "is %q, which overlaps the cluster's network %s; choose networks that do not overlap",
			network, other)
	}
}

// services validates the service network. Two keys can set it. If only one of them is set, its
// value also applies to the other key.
func (c *checker) services(m *MasterConfig, pods []netip.Prefix) netip.Prefix {
	key, value := "networkConfig.serviceNetworkCIDR", m.NetworkConfig.ServiceNetworkCIDR
	otherKey, otherValue := "kubernetesMasterConfig.servicesSubnet", m.KubernetesMasterConfig.ServicesSubnet
	_, set := c.document.lines[key]
	if _, otherSet := c.document.lines[otherKey]; otherSet && !set {
		key, otherKey = otherKey, key
	}
	if value != otherValue {
		c.fail(otherKey, "is %q, but %s is %q; they must be the same", otherValue, key, value)
	}
	texts := splitNetworks(value)
	network := c.cidr(key, texts[0])
	if network.IsValid() && (network.Bits() > 28 || network.Bits() < 12) {
		c.fail(key, "is %q, must be between a /12 and a /28", network)
	}
	if other, ok := overlaps(network, pods); ok {
		c.fail(key, "is %q, which overlaps the cluster network %s; choose networks that do not overlap",
			network, other)
	}
	c.secondServices(key, texts, m.DualStack(), pods)
	return network
}

// secondServices validates the IPv6 service network. Upstream limits its size to a /108.
func (c *checker) secondServices(key string, texts []string, networks dualstack.Networks, pods []netip.Prefix) {
	switch {
	case len(texts) == 1 && !networks.Enabled():
		return
	case len(texts) == 1:
		c.fail(key, "is %q, but clusterNetworks has the IPv6 network %s; add an IPv6 network for services, such as %q",
			texts[0], networks.IPv6, texts[0]+",fd02::/112")
		return
	case len(texts) > 2:
		c.fail(key, "is %q, must be an IPv4 network, or an IPv4 and an IPv6 network such as %q", strings.Join(texts, ","), "172.30.0.0/16,fd02::/112")
		return
	case !networks.Enabled():
		c.fail(key, "is %q, but clusterNetworks has no IPv6 network; add one, such as cidr fd01::/48 with hostSubnetLength 64, "+
			"or keep only %q", strings.Join(texts, ","), texts[0])
		return
	}
	if !isIPv6(texts[1]) {
		c.fail(key, "is %q, but the second network must be an IPv6 network such as fd02::/112", strings.Join(texts, ","))
		return
	}
	network := c.anyCIDR(key, texts[1])
	if network.IsValid() && (network.Bits() > 124 || network.Bits() < 108) {
		c.fail(key, "is %q, must be between a /108 and a /124", network)
	}
	if other, ok := overlaps(network, pods); ok {
		c.fail(key, "is %q, which overlaps the cluster network %s; choose networks that do not overlap", network, other)
	}
}

// isIPv6 reports whether text is an IPv6 network in CIDR notation.
func isIPv6(text string) bool {
	network, err := netip.ParsePrefix(text)
	return err == nil && network.Addr().Is6()
}

// secondNetwork validates that the IPv6 pod network has a subnet for each IPv4 subnet.
func (c *checker) secondNetwork(cidrKey, bitsKey string, networks dualstack.Networks) {
	second, hostBits, subnets := networks.IPv6, 0, new(big.Int)
	for _, network := range networks.IPv4 {
		hostBits = max(hostBits, network.HostBits)
		subnets.Add(subnets, network.Subnets())
	}
	switch {
	case second.Addr().Is4In6() || second.Addr().IsLinkLocalUnicast() || second.Addr().IsMulticast():
		c.fail(cidrKey, "is %q, must be a network of unique local or global addresses, such as fd01::/48", second)
	case second.HostBits > 128-second.Bits():
		return // another check reports this problem
	case second.HostBits < hostBits:
		c.fail(bitsKey, "is %d, must be at least the hostSubnetLength of the IPv4 networks, %d, so that each pod gets an IPv6 address", second.HostBits, hostBits)
	case second.Subnets().Cmp(subnets) < 0:
		c.fail(cidrKey, "is %q, which has %d subnets for hosts with hostSubnetLength %d; the IPv4 networks have %d: "+
			"choose a larger network or a smaller hostSubnetLength", second, second.Subnets(), second.HostBits, subnets)
	}
}

func (c *checker) clusterNetwork(cidrKey, bitsKey, cidr string, hostBits uint32,
	prefixes []netip.Prefix) netip.Prefix {
	if cidr == "" {
		c.fail(cidrKey, "is missing; write a network such as 10.128.0.0/14")
		return netip.Prefix{}
	}
	network := c.anyCIDR(cidrKey, cidr)
	if !network.IsValid() {
		return network
	}
	if freeBits := uint32(network.Addr().BitLen() - network.Bits()); hostBits < 3 || hostBits > freeBits {
		c.fail(bitsKey, "is %d, must be between 3 and %d, the number of host address bits in %s",
			hostBits, freeBits, network)
	}
	if other, ok := overlaps(network, prefixes); ok {
		c.fail(cidrKey, "is %q, which overlaps the cluster network %s; choose networks that do not overlap",
			network, other)
	}
	return network
}

func (c *checker) node(n *NodeConfig) {
	c.domain("nodeName", n.NodeName)
	if ip := c.ip("nodeIP", n.NodeIP); ip.IsValid() && (ip.IsUnspecified() || ip.IsLoopback() || ip.IsMulticast()) {
		c.fail("nodeIP", "is %q, which other hosts cannot reach; "+
			"set an address of this machine, or omit the key to detect it", n.NodeIP)
	}
	c.listen("servingInfo.bindAddress", n.ServingInfo.BindAddress)
	c.network("servingInfo.bindNetwork", n.ServingInfo.BindNetwork, n.ServingInfo.BindAddress)
	c.domain("dnsDomain", n.DNSDomain)
	c.ip("dnsIP", n.DNSIP)
	c.listen("dnsBindAddress", n.DNSBindAddress)
	for i, server := range n.Nameservers() {
		if _, err := netip.ParseAddrPort(server); err != nil {
			c.fail(indexed("dnsNameservers", i), "is %q, must be an IP address, "+
				"optionally with a port such as 192.0.2.1:53", n.DNSNameservers[i])
		}
	}
	if mtu := n.NetworkConfig.MTU; mtu != 0 && (mtu < 576 || mtu > 65535) {
		c.fail("networkConfig.mtu", "is %d, must be between 576 and 65535, or 0 to detect it", mtu)
	}
	if pods := n.PodManifestConfig; pods != nil {
		if pods.Path == "" {
			c.fail("podManifestConfig.path", "is missing; set the directory of the pods' manifests")
		}
		if pods.FileCheckIntervalSeconds < 0 {
			c.fail("podManifestConfig.fileCheckIntervalSeconds",
				"is %d, must be at least 1", pods.FileCheckIntervalSeconds)
		}
	}
	c.duration("iptablesSyncPeriod", n.IPTablesSyncPeriod)
	c.duration("authConfig.authenticationCacheTTL", n.AuthConfig.AuthenticationCacheTTL)
	c.duration("authConfig.authorizationCacheTTL", n.AuthConfig.AuthorizationCacheTTL)
	for key, size := range map[string]int{
		"authenticationCacheSize": n.AuthConfig.AuthenticationCacheSize, "authorizationCacheSize": n.AuthConfig.AuthorizationCacheSize,
	} {
		if size < 0 {
			c.fail("authConfig."+key, "is %d, must be 0 or more", size)
		}
	}
	if quota := n.VolumeConfig.LocalQuota.PerFSGroup; quota != nil && quota.Value() <= 0 {
		c.fail("volumeConfig.localQuota.perFSGroup", "is %s, must be more than 0", quota)
	}
	if client := n.MasterClientConnectionOverrides; client != nil {
		if client.QPS < 0 {
			c.fail("masterClientConnectionOverrides.qps", "is %v, must be 0 or more", client.QPS)
		}
		if client.Burst < 0 {
			c.fail("masterClientConnectionOverrides.burst", "is %d, must be 0 or more", client.Burst)
		}
	}
	c.arguments("kubeletArguments", n.KubeletArguments)
	c.arguments("proxyArguments", n.ProxyArguments)
	for _, name := range []string{"volume-plugin-dir", "pod-manifest-path", "root-dir"} {
		for i, path := range n.KubeletArguments[name] {
			c.absolute(indexed("kubeletArguments."+name, i), path)
		}
	}
	c.cni(n)
	c.extension(&n.Slipway)
}

func (c *checker) extension(e *NodeExtension) {
	c.device("slipway.bridge", e.Bridge)
	c.device("slipway.dnsDevice", e.DNSDevice)
	if e.Bridge == e.DNSDevice {
		c.fail("slipway.dnsDevice", "is %q, the name of the bridge; choose another", e.DNSDevice)
	}
	c.device("slipway.vxlanDevice", e.VXLANDevice)
	if e.VXLANDevice == e.Bridge || e.VXLANDevice == e.DNSDevice {
		c.fail("slipway.vxlanDevice", "is %q, the name of another device; choose another", e.VXLANDevice)
	}
	if paths := []string{PodConnectionsDirect, PodConnectionsStack}; !slices.Contains(paths, e.PodConnections) {
		c.fail("slipway.podConnections", "is %q; must be one of %s", e.PodConnections, strings.Join(paths, ", "))
	}
	if transports := []string{"auto", "vxlan", "host-gw"}; !slices.Contains(transports, e.PodTransport) {
		c.fail("slipway.podTransport", "is %q; must be one of %s", e.PodTransport, strings.Join(transports, ", "))
	}
	c.listen("slipway.balancerAddress", e.BalancerAddress)
	if period, critical := e.Shutdown.Period.Duration, e.Shutdown.Critical.Duration; period < 0 || critical < 0 || period > 0 && critical > period {
		c.fail("slipway.shutdown", "has the values period %s and critical %s; both must be at least 0s, and critical must not exceed period", period, critical)
	}
	if !regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]{0,126}$`).MatchString(e.NFTTable) {
		c.fail("slipway.nftTable", "is %q, must be a letter followed by letters, digits, '_', '-' and '.'", e.NFTTable)
	}
	if !filepath.IsAbs(e.CgroupRoot) || filepath.Clean(e.CgroupRoot) != e.CgroupRoot || e.CgroupRoot == "/" {
		c.fail("slipway.cgroupRoot", "is %q, must be a path below the root cgroup, such as /slipway",
			e.CgroupRoot)
	}
	const maxLength = 72
	if len(e.RunDirectory) > maxLength {
		c.fail("slipway.runDirectory", "has %d characters, must have at most %d, "+
			"because the path of a socket is limited to 107; set a shorter path",
			len(e.RunDirectory), maxLength)
	}
	c.flexVolumes(e.FlexVolume)
	c.localStorage(&e.LocalStorage)
}
