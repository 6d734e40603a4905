package config

import (
	"slices"
	"strings"
)

// actedUpon lists, by kind, the settings that this version acts upon; a setting stands for all
// below it.
func actedUpon(kind string) []string {
	if kind == masterKind {
		return append(pluginKeys(), []string{
			"apiVersion",
			"kind",
			"servingInfo.bindAddress",
			"servingInfo.cipherSuites",
			"servingInfo.minTLSVersion",
			"servingInfo.namedCertificates",
			"masterPublicURL",
			"corsAllowedOrigins",
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
			"networkConfig.clusterNetworkCIDR",
			"networkConfig.hostSubnetLength",
			"networkConfig.clusterNetworks",
			"networkConfig.serviceNetworkCIDR",
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
		"dnsDomain",
		"dnsIP",
		"dnsBindAddress",
		"dnsNameservers",
		"networkConfig.mtu",
		"volumeDirectory",
		"podManifestConfig",
		"kubeletArguments",
		"proxyArguments",
		"slipway",
	}
}

// pluginKeys are the settings of the admission plug-ins that exist here.
func pluginKeys() []string {
	var keys []string
	for _, name := range admissionPlugins() {
		keys = append(keys, "admissionConfig.pluginConfig."+name)
	}
	return keys
}

// Ignored lists what the files set and this version does not act upon, each as
// `MasterConfig: networkConfig.networkPluginName`. A block of which nothing is acted upon is listed once.
// Values that say nothing (null, false, 0, "", empty lists and mappings) are not listed.
func (c *Config) Ignored() []string {
	list := ignored(masterKind, c.master)
	if len(c.Master.NetworkConfig.ClusterNetworks) > 1 {
		list = append(list, masterKind+": networkConfig.clusterNetworks after the first")
	}
	return append(list, ignored(nodeKind, c.node)...)
}

func ignored(kind string, d *document) []string {
	acted := actedUpon(kind)
	var list []string
	for _, path := range d.set {
		if slices.ContainsFunc(acted, func(a string) bool { return within(path, a) }) {
			continue
		}
		if entry := kind + ": " + highestIgnored(path, acted); !slices.Contains(list, entry) {
			list = append(list, entry)
		}
	}
	slices.Sort(list)
	return list
}

// highestIgnored is the highest block around path in which nothing is acted upon.
func highestIgnored(path string, acted []string) string {
	for i, r := range path {
		block := path[:i]
		if r == '.' && !slices.ContainsFunc(acted, func(a string) bool { return within(a, block) }) {
			return block
		}
	}
	return path
}

// within reports whether path is block or lies below it.
func within(path, block string) bool {
	return path == block || strings.HasPrefix(path, block+".")
}
