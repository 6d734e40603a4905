package config

import (
	"path/filepath"
	"strconv"

	legacyv1 "github.com/openshift/api/legacyconfig/v1"
)

// reference is a setting that holds the path of a file or folder.
type reference struct {
	key  string
	path *string
}

// resolve makes relative paths absolute, from folder.
func resolve(folder string, references []reference) {
	for _, r := range references {
		if *r.path != "" && !filepath.IsAbs(*r.path) {
			*r.path = filepath.Join(folder, *r.path)
		}
	}
}

// fileReferences lists the paths of a MasterConfig that OpenShift 3 resolves, and ours.
func (c *MasterConfig) fileReferences() []reference {
	kube := &c.KubernetesMasterConfig
	list := servingReferences("servingInfo", &c.ServingInfo.ServingInfo)
	list = append(list, pairReferences("aggregatorConfig.proxyClientInfo", &c.AggregatorConfig.ProxyClientInfo)...)
	list = append(list, pairReferences("etcdClientInfo", &c.EtcdClientInfo.CertInfo)...)
	list = append(list, pairReferences("kubeletClientInfo", &c.KubeletClientInfo.CertInfo)...)
	list = append(list, pairReferences("kubernetesMasterConfig.proxyClientInfo", &kube.ProxyClientInfo)...)
	list = append(list,
		reference{"etcdClientInfo.ca", &c.EtcdClientInfo.CA},
		reference{"kubeletClientInfo.ca", &c.KubeletClientInfo.CA},
		reference{"kubernetesMasterConfig.schedulerConfigFile", &kube.SchedulerConfigFile},
		reference{"masterClients.openshiftLoopbackKubeConfig", &c.MasterClients.OpenShiftLoopbackKubeConfig},
		reference{"serviceAccountConfig.masterCA", &c.ServiceAccountConfig.MasterCA},
		reference{"serviceAccountConfig.privateKeyFile", &c.ServiceAccountConfig.PrivateKeyFile},
		reference{"auditConfig.auditFilePath", &c.AuditConfig.AuditFilePath},
		reference{"auditConfig.policyFile", &c.AuditConfig.PolicyFile},
		reference{"auditConfig.webHookKubeConfig", &c.AuditConfig.WebHookKubeConfig},
		reference{"authConfig.oauthMetadataFile", &c.AuthConfig.OAuthMetadataFile},
		reference{"imagePolicyConfig.additionalTrustedCA", &c.ImagePolicyConfig.AdditionalTrustedCA},
	)
	for i := range c.ServiceAccountConfig.PublicKeyFiles {
		list = append(list, reference{indexed("serviceAccountConfig.publicKeyFiles", i), &c.ServiceAccountConfig.PublicKeyFiles[i]})
	}
	if header := c.AuthConfig.RequestHeader; header != nil {
		list = append(list, reference{"authConfig.requestHeader.clientCA", &header.ClientCA})
	}
	for i := range c.AuthConfig.WebhookTokenAuthenticators {
		list = append(list, reference{indexed("authConfig.webhookTokenAuthenticators", i) + ".configFile", &c.AuthConfig.WebhookTokenAuthenticators[i].ConfigFile})
	}
	for name, plugin := range c.AdmissionConfig.PluginConfig {
		if plugin != nil {
			list = append(list, reference{"admissionConfig.pluginConfig." + name + ".location", &plugin.Location})
		}
	}
	if signer := c.ControllerConfig.ServiceServingCert.Signer; signer != nil {
		list = append(list, pairReferences("controllerConfig.serviceServingCert.signer", signer)...)
	}
	if etcd := c.EtcdConfig; etcd != nil {
		list = append(list, servingReferences("etcdConfig.servingInfo", &etcd.ServingInfo)...)
		list = append(list, servingReferences("etcdConfig.peerServingInfo", &etcd.PeerServingInfo)...)
		list = append(list, reference{"etcdConfig.storageDirectory", &etcd.StorageDir})
	}
	return append(list, oauthReferences(c.OAuthConfig)...)
}

// fileReferences lists the paths of a NodeConfig that OpenShift 3 resolves, and ours. Those among
// the arguments of kubelet and proxy are not resolved there either.
func (c *NodeConfig) fileReferences() []reference {
	list := servingReferences("servingInfo", &c.ServingInfo)
	list = append(list,
		reference{"masterKubeConfig", &c.MasterKubeConfig},
		reference{"dnsRecursiveResolvConf", &c.DNSRecursiveResolvConf},
		reference{"volumeDirectory", &c.VolumeDirectory},
		reference{"slipway.containerdDirectory", &c.Slipway.ContainerdDirectory},
		reference{"slipway.imageDirectory", &c.Slipway.ImageDirectory},
		reference{"slipway.registryConfigDirectory", &c.Slipway.RegistryConfigDirectory},
		reference{"slipway.runDirectory", &c.Slipway.RunDirectory},
	)
	if pods := c.PodManifestConfig; pods != nil {
		list = append(list, reference{"podManifestConfig.path", &pods.Path})
	}
	return list
}

func oauthReferences(c *legacyv1.OAuthConfig) []reference {
	if c == nil {
		return nil
	}
	var list []reference
	if c.MasterCA != nil {
		list = append(list, reference{"oauthConfig.masterCA", c.MasterCA})
	}
	if c.SessionConfig != nil {
		list = append(list, reference{"oauthConfig.sessionConfig.sessionSecretsFile", &c.SessionConfig.SessionSecretsFile})
	}
	if pages := c.Templates; pages != nil {
		list = append(list,
			reference{"oauthConfig.templates.login", &pages.Login},
			reference{"oauthConfig.templates.providerSelection", &pages.ProviderSelection},
			reference{"oauthConfig.templates.error", &pages.Error})
	}
	return list
}

func servingReferences(key string, c *legacyv1.ServingInfo) []reference {
	list := append(pairReferences(key, &c.CertInfo), reference{key + ".clientCA", &c.ClientCA})
	for i := range c.NamedCertificates {
		list = append(list, pairReferences(indexed(key+".namedCertificates", i), &c.NamedCertificates[i].CertInfo)...)
	}
	return list
}

func pairReferences(key string, c *legacyv1.CertInfo) []reference {
	return []reference{{key + ".certFile", &c.CertFile}, {key + ".keyFile", &c.KeyFile}}
}

func indexed(key string, i int) string { return key + "[" + strconv.Itoa(i) + "]" }
