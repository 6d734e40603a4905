package config

import (
	"fmt"
	"slices"
	"strings"
)

// supported returns the keys that this version supports in a document of the given kind. A key
// includes all keys below it.
func supported(kind string) []string {
	if kind == masterKind {
		return append(pluginKeys(), []string{
			"apiVersion",
			"kind",
			"servingInfo.bindAddress",
			"servingInfo.bindNetwork",
			"servingInfo.cipherSuites",
			"servingInfo.minTLSVersion",
			"servingInfo.namedCertificates",
			"masterPublicURL",
			"corsAllowedOrigins",
			"dnsConfig.bindAddress",
			"dnsConfig.bindNetwork",
			"dnsConfig.allowRecursiveQueries",
			"etcdClientInfo",
			"etcdConfig.address",
			"etcdConfig.peerAddress",
			"etcdConfig.storageDirectory",
			"kubernetesMasterConfig.masterIP",
			"kubernetesMasterConfig.servicesSubnet",
			"kubernetesMasterConfig.servicesNodePortRange",
			"kubernetesMasterConfig.podEvictionTimeout",
			"kubernetesMasterConfig.apiServerArguments",
			"kubernetesMasterConfig.controllerArguments",
			"kubernetesMasterConfig.schedulerArguments",
			"kubernetesMasterConfig.schedulerConfigFile",
			"networkConfig.clusterNetworkCIDR",
			"networkConfig.hostSubnetLength",
			"networkConfig.clusterNetworks",
			"networkConfig.serviceNetworkCIDR",
			"networkConfig.networkPluginName",
			"networkConfig.vxlanPort",
			"networkConfig.externalIPNetworkCIDRs",
			"networkConfig.ingressIPNetworkCIDR",
			"auditConfig.enabled",
			"auditConfig.auditFilePath",
			"auditConfig.maximumFileRetentionDays",
			"auditConfig.maximumRetainedFiles",
			"auditConfig.maximumFileSizeMegabytes",
			"auditConfig.policyFile",
			"auditConfig.policyConfiguration",
			"oauthConfig.masterPublicURL",
			"oauthConfig.assetPublicURL",
			"oauthConfig.alwaysShowProviderSelection",
			"oauthConfig.identityProviders",
			"oauthConfig.grantConfig",
			"oauthConfig.sessionConfig",
			"oauthConfig.tokenConfig",
			"oauthConfig.templates",
			"imagePolicyConfig.maxImagesBulkImportedPerRepository",
			"imagePolicyConfig.disableScheduledImport",
			"imagePolicyConfig.scheduledImageImportMinimumIntervalSeconds",
			"imagePolicyConfig.maxScheduledImageImportsPerMinute",
			"imagePolicyConfig.allowedRegistriesForImport",
			"imagePolicyConfig.internalRegistryHostname",
			"imagePolicyConfig.externalRegistryHostname",
			"projectConfig",
			"routingConfig.subdomain",
			"serviceAccountConfig.limitSecretReferences",
			"serviceAccountConfig.managedNames",
			"serviceAccountConfig.privateKeyFile",
			"serviceAccountConfig.publicKeyFiles",
			"templateServiceBrokerConfig.templateNamespaces",
			"jenkinsPipelineConfig",
			"ansibleServiceBrokerConfig",
			"slipway",
		}...)
	}
	return []string{
		"apiVersion",
		"kind",
		"nodeName",
		"nodeIP",
		"enableUnidling",
		"servingInfo.bindAddress",
		"servingInfo.bindNetwork",
		"servingInfo.clientCA",
		"dnsDomain",
		"dnsIP",
		"dnsBindAddress",
		"dnsNameservers",
		"dnsRecursiveResolvConf",
		"iptablesSyncPeriod",
		"networkConfig.mtu",
		"networkConfig.networkPluginName",
		"volumeConfig.localQuota.perFSGroup",
		"volumeDirectory",
		"podManifestConfig",
		"authConfig",
		"masterClientConnectionOverrides.acceptContentTypes",
		"masterClientConnectionOverrides.contentType",
		"masterClientConnectionOverrides.qps",
		"masterClientConnectionOverrides.burst",
		"kubeletArguments",
		"proxyArguments",
		"slipway",
	}
}

// pluginKeys returns the keys of the supported admission plugins.
func pluginKeys() []string {
	var keys []string
	for _, name := range admissionPlugins() {
		keys = append(keys, PluginKey(name))
	}
	return keys
}

// Ignored returns the keys that the files set but this version ignores, such as `NodeConfig:
// imageConfig`. If all keys in a block are ignored, it returns only the block. It omits keys with
// an empty value (null, false, 0, "", empty lists and mappings).
func (c *Config) Ignored() []string {
	list := ignored(masterKind, c.master)
	if c.Scheduler.missing() {
		list = append(list, masterKind+": kubernetesMasterConfig.schedulerConfigFile, because the file does not exist")
	}
	for key, path := range map[string]string{
		"dnsRecursiveResolvConf": c.Node.DNSRecursiveResolvConf, "servingInfo.clientCA": c.Node.ServingInfo.ClientCA,
	} {
		if path != "" && existing(path) == "" {
			list = append(list, nodeKind+": "+key+", because the file does not exist")
		}
	}
	if cluster, plugin := c.Master.NetworkConfig.NetworkPluginName, c.Node.NetworkConfig.NetworkPluginName; plugin != "" && plugin != cluster {
		list = append(list, fmt.Sprintf("%s: networkConfig.networkPluginName, because master-config.yaml has %s", nodeKind, cluster))
	}
	if accepted, ok := c.Node.acceptedContentTypes(); !ok {
		list = append(list, nodeKind+": masterClientConnectionOverrides.acceptContentTypes, because the kubelet accepts "+accepted)
	}
	list = slices.Concat(list, c.ignoredCNI(), c.Node.ignoredProxyMode(), ignored(nodeKind, c.node), c.graduated)
	slices.Sort(list)
	return list
}

// acceptedContentTypes returns the response formats that the kubelet accepts. As in upstream, they
// depend only on contentType. ok reports whether acceptContentTypes is empty or specifies the same
// formats.
func (c *NodeConfig) acceptedContentTypes() (accepted string, ok bool) {
	const protobuf, json = "application/vnd.kubernetes.protobuf", "application/json"
	client := c.MasterClientConnectionOverrides
	if client == nil {
		return "", true
	}
	if accepted = client.ContentType; accepted == "" || accepted == protobuf {
		accepted = protobuf + "," + json
	}
	configured := strings.ReplaceAll(client.AcceptContentTypes, " ", "")
	return accepted, configured == "" || configured == accepted
}

func ignored(kind string, d *document) []string {
	settings := supported(kind)
	var list []string
	for _, path := range d.set {
		if slices.ContainsFunc(settings, func(a string) bool { return within(path, a) }) {
			continue
		}
		if entry := kind + ": " + highestIgnored(path, settings); !slices.Contains(list, entry) {
			list = append(list, entry)
		}
	}
	slices.Sort(list)
	return list
}

// highestIgnored returns the outermost block that contains path and does not contain a supported
// setting. If there is no such block, it returns path.
func highestIgnored(path string, settings []string) string {
	for i, r := range path {
		block := path[:i]
		if r == '.' && !slices.ContainsFunc(settings, func(a string) bool { return within(a, block) }) {
			return block
		}
	}
	return path
}

// within reports whether path is block or a path below block.
func within(path, block string) bool {
	return path == block || strings.HasPrefix(path, block+".")
}
