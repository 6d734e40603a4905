package config

import (
	"path/filepath"

	legacyv1 "github.com/openshift/api/legacyconfig/v1"
)

// resolve converts paths that are relative to folder to absolute paths.
func resolve(folder string, paths []*string) {
	for _, path := range paths {
		if *path != "" && !filepath.IsAbs(*path) {
			*path = filepath.Join(folder, *path)
		}
	}
}

// paths returns pointers to the file and directory paths in a MasterConfig. Like OpenShift 3, the
// caller resolves these paths relative to the configuration file.
func (c *MasterConfig) paths() []*string {
	kube, audit, accounts := &c.KubernetesMasterConfig, &c.AuditConfig, &c.ServiceAccountConfig
	list := servingPaths(&c.ServingInfo.ServingInfo)
	list = append(list, pairPaths(&c.AggregatorConfig.ProxyClientInfo)...)
	list = append(list, pairPaths(&c.EtcdClientInfo.CertInfo)...)
	list = append(list, pairPaths(&c.KubeletClientInfo.CertInfo)...)
	list = append(list, pairPaths(&kube.ProxyClientInfo)...)
	list = append(list,
		&c.EtcdClientInfo.CA,
		&c.KubeletClientInfo.CA,
		&kube.SchedulerConfigFile,
		&c.MasterClients.OpenShiftLoopbackKubeConfig,
		&accounts.MasterCA,
		&accounts.PrivateKeyFile,
		&audit.AuditFilePath,
		&audit.PolicyFile,
		&audit.WebHookKubeConfig,
		&c.AuthConfig.OAuthMetadataFile,
		&c.ImagePolicyConfig.AdditionalTrustedCA,
		&c.Slipway.Registry.Directory,
		&c.Slipway.Registry.Configuration,
		&c.Slipway.Registry.SignatureDirectory,
		&c.Slipway.Descheduler.PolicyConfigFile,
		&c.Slipway.EtcdSnapshots.Directory,
		&c.Slipway.EtcdSnapshots.Configuration,
	)
	for i := range accounts.PublicKeyFiles {
		list = append(list, &accounts.PublicKeyFiles[i])
	}
	if header := c.AuthConfig.RequestHeader; header != nil {
		list = append(list, &header.ClientCA)
	}
	for i := range c.AuthConfig.WebhookTokenAuthenticators {
		list = append(list, &c.AuthConfig.WebhookTokenAuthenticators[i].ConfigFile)
	}
	for _, plugin := range c.AdmissionConfig.PluginConfig {
		if plugin != nil {
			list = append(list, &plugin.Location)
		}
	}
	if signer := c.ControllerConfig.ServiceServingCert.Signer; signer != nil {
		list = append(list, pairPaths(signer)...)
	}
	if etcd := c.EtcdConfig; etcd != nil {
		list = append(list, &etcd.StorageDir)
		list = append(list, servingPaths(&etcd.ServingInfo)...)
		list = append(list, servingPaths(&etcd.PeerServingInfo)...)
	}
	return append(list, oauthPaths(c.OAuthConfig)...)
}

// paths returns pointers to the file and directory paths in a NodeConfig that OpenShift 3 resolves
// relative to the configuration file. It also returns pointers to the paths in the slipway block.
// As in OpenShift 3, paths in kubelet and proxy arguments are not included.
func (c *NodeConfig) paths() []*string {
	list := append(servingPaths(&c.ServingInfo),
		&c.MasterKubeConfig,
		&c.DNSRecursiveResolvConf,
		&c.VolumeDirectory,
		&c.Slipway.ContainerdDirectory,
		&c.Slipway.ImageDirectory,
		&c.Slipway.RegistryConfigDirectory,
		&c.Slipway.SignaturePolicy,
		&c.Slipway.SignatureDirectory,
		&c.Slipway.RunDirectory,
		&c.Slipway.LocalStorage.Directory,
	)
	if pods := c.PodManifestConfig; pods != nil {
		list = append(list, &pods.Path)
	}
	return list
}

func oauthPaths(c *legacyv1.OAuthConfig) []*string {
	if c == nil {
		return nil
	}
	var list []*string
	if c.MasterCA != nil {
		list = append(list, c.MasterCA)
	}
	if c.SessionConfig != nil {
		list = append(list, &c.SessionConfig.SessionSecretsFile)
	}
	if pages := c.Templates; pages != nil {
		list = append(list, &pages.Login, &pages.ProviderSelection, &pages.Error)
	}
	return list
}

func servingPaths(c *legacyv1.ServingInfo) []*string {
	list := append(pairPaths(&c.CertInfo), &c.ClientCA)
	for i := range c.NamedCertificates {
		list = append(list, pairPaths(&c.NamedCertificates[i].CertInfo)...)
	}
	return list
}

func pairPaths(c *legacyv1.CertInfo) []*string {
	return []*string{&c.CertFile, &c.KeyFile}
}
