package config

import (
	"crypto/sha256"
	_ "embed" // required by go:embed
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	legacyv1 "github.com/openshift/api/legacyconfig/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/internal/networkplugin"
)

// dnsAddress is the default address of the node's DNS server for pods. It is a link-local address
// that is the same on each host.
const dnsAddress = "169.254.20.10:53"

// ingressNetwork is the default network for LoadBalancer services. noIngressNetwork is the value
// that disables addresses for these services.
const ingressNetwork, noIngressNetwork = "172.29.0.0/16", "0.0.0.0/32"

// DefaultMaster sets the keys that c omits to OpenShift 3's defaults. dataDir must be absolute.
// Three settings stay empty because they are determined on each start: masterPublicURL and
// kubernetesMasterConfig.masterIP, which depend on the machine's address, and the key files in
// serviceAccountConfig, which are generated with the certificates.
func DefaultMaster(c *MasterConfig, dataDir string) {
	c.Kind, c.APIVersion = masterKind, legacyv1.GroupVersion.Version
	fill(&c.ServingInfo.BindAddress, "0.0.0.0:8443")

	if c.EtcdConfig == nil {
		c.EtcdConfig = &legacyv1.EtcdConfig{}
	}
	fill(&c.EtcdConfig.Address, net.JoinHostPort("127.0.0.1", c.etcdPort()))
	fill(&c.EtcdConfig.PeerAddress, "127.0.0.1:7001")
	fill(&c.EtcdConfig.StorageDir, filepath.Join(dataDir, "etcd"))

	network, kube := &c.NetworkConfig, &c.KubernetesMasterConfig
	if len(network.ClusterNetworks) == 0 {
		fill(&network.DeprecatedClusterNetworkCIDR, "10.128.0.0/14")
		fill(&network.DeprecatedHostSubnetLength, 9)
		network.ClusterNetworks = []legacyv1.ClusterNetworkEntry{{
			CIDR: network.DeprecatedClusterNetworkCIDR, HostSubnetLength: network.DeprecatedHostSubnetLength,
		}}
		network.DeprecatedClusterNetworkCIDR, network.DeprecatedHostSubnetLength = "", 0
	}
	fill(&network.NetworkPluginName, networkplugin.Default)
	fill(&network.VXLANPort, networkplugin.VXLANPort)
	fill(&network.ServiceNetworkCIDR, kube.ServicesSubnet)
	fill(&network.ServiceNetworkCIDR, "172.30.0.0/16")
	fill(&kube.ServicesSubnet, network.ServiceNetworkCIDR)
	if len(kube.ControllerArguments["cloud-provider"]) == 0 && apart(ingressNetwork, network) {
		fill(&network.IngressIPNetworkCIDR, ingressNetwork)
	}
	fill(&kube.ServicesNodePortRange, "30000-32767")
	fill(&kube.PodEvictionTimeout, "5m")

	fill(&c.RoutingConfig.Subdomain, "apps.localhost")
	defaultOAuth(c, dataDir)
	if c.ProjectConfig.SecurityAllocator == nil {
		c.ProjectConfig.SecurityAllocator = &legacyv1.SecurityAllocator{}
	}
	fill(&c.ProjectConfig.SecurityAllocator.UIDAllocatorRange, "1000000000-1999999999/10000")
	fill(&c.ProjectConfig.SecurityAllocator.MCSAllocatorRange, "s0:/2")
	fill(&c.ProjectConfig.SecurityAllocator.MCSLabelsPerProject, 5)
	if c.ServiceAccountConfig.ManagedNames == nil {
		c.ServiceAccountConfig.ManagedNames = []string{"builder", "deployer", "default"}
	}

	if c.TemplateServiceBrokerConfig.TemplateNamespaces == nil {
		c.TemplateServiceBrokerConfig.TemplateNamespaces = []string{"openshift"}
	}
	fill(&c.JenkinsPipelineConfig.TemplateNamespace, "openshift")
	fill(&c.JenkinsPipelineConfig.TemplateName, "jenkins-ephemeral")
	fill(&c.JenkinsPipelineConfig.ServiceName, "jenkins")
	defaultAnsibleBroker(&c.AnsibleServiceBrokerConfig)
	if c.AuditConfig.Enabled {
		fill(&c.AuditConfig.AuditFilePath, filepath.Join(dataDir, "log", "audit.log"))
		fill(&c.AuditConfig.MaximumFileSizeMegabytes, 100)
	}
	defaultImages(c, dataDir)
	if c.Slipway.EncryptSecrets == nil {
		encrypt := true
		c.Slipway.EncryptSecrets = &encrypt
	}
	fill(&c.Slipway.CertificateLifetime, metav1.Duration{Duration: 365 * 24 * time.Hour})
	fill(&c.Slipway.Descheduler.Interval, metav1.Duration{Duration: 5 * time.Minute})
	fill(&c.Slipway.EtcdSnapshots.Interval, metav1.Duration{Duration: 12 * time.Hour})
	fill(&c.Slipway.EtcdSnapshots.Keep, 5)
	fill(&c.Slipway.EtcdSnapshots.Directory, filepath.Join(dataDir, "snapshots"))
	fill(&c.Slipway.EtcdMaintenance.Interval, metav1.Duration{Duration: time.Minute})
	fill(&c.Slipway.EtcdMaintenance.FreeSpace, "256Mi")
	fill(&c.Slipway.CALifetime, metav1.Duration{Duration: 10 * 365 * 24 * time.Hour})
}

// auditPolicy is the default audit policy.
//
//go:embed audit-policy.yaml
var auditPolicy []byte

// defaultAudit returns the audit settings for a configuration without an auditConfig block:
// auditing is enabled, and the logs are limited to 600 MB and 30 days. OpenShift 3 disables
// auditing by default.
func defaultAudit() legacyv1.AuditConfig {
	policy, err := yaml.YAMLToJSON(auditPolicy)
	if err != nil {
		panic(err) // cannot happen: the file is embedded, and a test decodes it
	}
	return legacyv1.AuditConfig{
		Enabled: true, MaximumFileRetentionDays: 30, MaximumRetainedFiles: 5, MaximumFileSizeMegabytes: 100,
		PolicyConfiguration: runtime.RawExtension{Raw: policy},
	}
}

// apart reports whether a network overlaps none of the cluster's networks. It ignores invalid
// cluster networks.
func apart(network string, c *legacyv1.MasterNetworkConfig) bool {
	inUse := splitNetworks(c.ServiceNetworkCIDR)
	for _, entry := range c.ClusterNetworks {
		inUse = append(inUse, entry.CIDR)
	}
	candidate := netip.MustParsePrefix(network)
	return !slices.ContainsFunc(inUse, func(text string) bool {
		other, err := netip.ParsePrefix(text)
		return err == nil && other.Overlaps(candidate)
	})
}

// defaultImages sets the defaults for images and the registry.
func defaultImages(c *MasterConfig, dataDir string) {
	policy := &c.ImagePolicyConfig
	fill(&policy.MaxImagesBulkImportedPerRepository, 50)
	fill(&policy.ScheduledImageImportMinimumIntervalSeconds, 15*60)
	fill(&policy.MaxScheduledImageImportsPerMinute, 60)
	fill(&c.Slipway.Registry.BindAddress, "0.0.0.0:5000")
	fill(&c.Slipway.Registry.Directory, filepath.Join(dataDir, "registry"))
	fill(&c.Slipway.Registry.SignatureDirectory, "/etc/containers/registries.d")
	fill(&c.Slipway.Registry.Reserve, "16%")
	fill(&c.Slipway.Registry.ProjectQuota, "50Gi")
}

// usersFile returns the path of the default provider's htpasswd file.
func usersFile(dataDir string) string { return filepath.Join(dataDir, "users.htpasswd") }

// defaultOAuth sets the defaults in oauthConfig. Without an oauthConfig block, it adds a provider
// that reads its users from a file. It adds no provider to an existing oauthConfig block, so users
// cannot log in if that block has no providers.
func defaultOAuth(c *MasterConfig, dataDir string) {
	if c.OAuthConfig == nil {
		if c.AuthConfig.OAuthMetadataFile != "" {
			return
		}
		raw := fmt.Sprintf(`{"apiVersion":"v1","kind":"HTPasswdPasswordIdentityProvider","file":%q}`, usersFile(dataDir))
		c.OAuthConfig = &legacyv1.OAuthConfig{IdentityProviders: []legacyv1.IdentityProvider{
			{Name: "htpasswd_auth", UseAsChallenger: true, UseAsLogin: true, MappingMethod: "claim"},
		}}
		c.OAuthConfig.IdentityProviders[0].Provider.Raw = []byte(raw)
	}
	oauth := c.OAuthConfig
	fill(&oauth.MasterPublicURL, c.MasterPublicURL)
	fill(&oauth.GrantConfig.Method, legacyv1.GrantHandlerAuto)
	fill(&oauth.GrantConfig.ServiceAccountMethod, legacyv1.GrantHandlerPrompt)
	if oauth.SessionConfig == nil {
		oauth.SessionConfig = &legacyv1.SessionConfig{}
	}
	fill(&oauth.SessionConfig.SessionSecretsFile, filepath.Join(dataDir, "session-secrets.yaml"))
	fill(&oauth.SessionConfig.SessionName, "ssn")
	fill(&oauth.SessionConfig.SessionMaxAgeSeconds, 300)
	fill(&oauth.TokenConfig.AuthorizeTokenMaxAgeSeconds, 300)
	fill(&oauth.TokenConfig.AccessTokenMaxAgeSeconds, 86400)
	for i := range oauth.IdentityProviders {
		fill(&oauth.IdentityProviders[i].MappingMethod, "claim")
	}
}

// DefaultNode sets the keys that c omits to OpenShift 3's defaults. It skips keys for components
// that Slipway's node does not have. dataDir must be absolute. hostName is the machine's name as a
// DNS subdomain. nodeIP and networkConfig.mtu stay empty because the machine's address can change
// between starts.
func DefaultNode(c *NodeConfig, dataDir, hostName string) {
	c.Kind, c.APIVersion = nodeKind, legacyv1.GroupVersion.Version
	fill(&c.NodeName, hostName)
	fill(&c.ServingInfo.BindAddress, "0.0.0.0:10250")
	fill(&c.DNSDomain, "cluster.local")
	fill(&c.DNSBindAddress, dnsAddress)
	if host, _, err := net.SplitHostPort(c.DNSAddress()); err == nil {
		fill(&c.DNSIP, host)
	}
	fill(&c.VolumeDirectory, filepath.Join(dataDir, "kubelet"))
	if c.PodManifestConfig != nil {
		fill(&c.PodManifestConfig.FileCheckIntervalSeconds, 20)
	}
	if c.KubeletArguments == nil {
		c.KubeletArguments = legacyv1.ExtendedArguments{}
	}
	for name, value := range map[string]string{
		"volume-plugin-dir":       "/usr/libexec/kubernetes/kubelet-plugins/volume/exec",
		"max-pods":                "250",
		"image-gc-high-threshold": "90",
		"image-gc-low-threshold":  "80",
	} {
		if len(c.KubeletArguments[name]) == 0 {
			c.KubeletArguments[name] = []string{value}
		}
	}

	fill(&c.Slipway.Bridge, "slipway0")
	fill(&c.Slipway.DNSDevice, "slipway-dns")
	fill(&c.Slipway.VXLANDevice, "vxlan_sys_4789")
	fill(&c.Slipway.PodTransport, "auto")
	fill(&c.Slipway.PodConnections, PodConnectionsDirect)
	fill(&c.Slipway.BalancerAddress, "127.0.0.1:8442")
	fill(&c.Slipway.NFTTable, "slipway")
	fill(&c.Slipway.CgroupRoot, cgroupRoot(dataDir))
	fill(&c.Slipway.ContainerdDirectory, filepath.Join(dataDir, "containerd"))
	fill(&c.Slipway.ImageDirectory, filepath.Join(dataDir, "images"))
	fill(&c.Slipway.RegistryConfigDirectory, filepath.Join(dataDir, "registries.d"))
	fill(&c.Slipway.SignatureDirectory, "/etc/containers/registries.d")
	fill(&c.Slipway.SignaturePolicy, "/etc/containers/policy.json")
	fill(&c.Slipway.RunDirectory, filepath.Join(dataDir, "run"))
	for _, setting := range []struct {
		value    **metav1.Duration
		fallback time.Duration
	}{{&c.Slipway.Shutdown.Period, 30 * time.Second}, {&c.Slipway.Shutdown.Critical, 10 * time.Second}} {
		if *setting.value == nil {
			*setting.value = &metav1.Duration{Duration: setting.fallback}
		}
	}
	fill(&c.Slipway.LocalStorage.Directory, filepath.Join(dataDir, "storage"))
	fill(&c.Slipway.LocalStorage.Reserve, "5%")
	fill(&c.Slipway.LocalStorage.OvercommitPercent, 100)
}

// UsualDataDir is the default path of the data directory.
const UsualDataDir = "/var/lib/slipway"

// cgroupRoot returns the cgroup of the host with the given data directory. Hosts that share a
// machine must have different cgroups, because each node terminates unknown pods below its cgroup.
func cgroupRoot(dataDir string) string {
	if dataDir == UsualDataDir {
		return "/slipway"
	}
	return fmt.Sprintf("/slipway-%x", sha256.Sum256([]byte(dataDir)))[:len("/slipway-")+8]
}

// fill sets *value to fallback if *value is zero.
func fill[T comparable](value *T, fallback T) {
	var zero T
	if *value == zero {
		*value = fallback
	}
}

// hostName returns the machine's name as a node name: in lower case, with '-' in place of each
// character that is invalid in a DNS subdomain.
func hostName() string {
	name, err := os.Hostname()
	if err != nil {
		return "localhost"
	}
	return nodeNameOf(name)
}

func nodeNameOf(hostName string) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '.' {
			return r
		}
		return '-'
	}, strings.ToLower(hostName))
	if name = strings.Trim(name, "-."); name == "" {
		return "localhost"
	}
	return name
}

func defaultAnsibleBroker(c *AnsibleServiceBrokerConfig) {
	if c.Namespaces == nil {
		c.Namespaces = []string{"openshift"}
	}
	defaultBundles(&c.WhiteList, c.BlackList)
	for i := range c.Registries {
		r := &c.Registries[i]
		defaultBundles(&r.WhiteList, r.BlackList)
		fill(&r.Tag, "latest")
	}
	fill(&c.SandboxRole, "edit")
}

// defaultBundles sets the default white list, which matches the conventional names of bundles,
// unless a white list or a black list is configured.
func defaultBundles(whiteList *[]string, blackList []string) {
	if *whiteList == nil && len(blackList) == 0 {
		*whiteList = []string{"-apb$"}
	}
}
