package config

import (
	legacyv1 "github.com/openshift/api/legacyconfig/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MasterConfig is OpenShift 3's configuration of a master with a block of ours.
type MasterConfig struct {
	legacyv1.MasterConfig `json:",inline"`

	// Slipway holds what OpenShift 3 has no key for; it may be left out.
	Slipway MasterExtension `json:"slipway"`
}

// MasterExtension is the block `slipway` of a MasterConfig.
type MasterExtension struct {
	// CertificateLifetime is how long an issued certificate is valid, one year by default. It is
	// replaced when a third of it is left.
	CertificateLifetime metav1.Duration `json:"certificateLifetime"`
	// CALifetime is how long a certificate authority is valid, ten years by default. It counts when
	// the authority is created, at the first start.
	CALifetime metav1.Duration `json:"caLifetime"`
	// EncryptSecrets stores Secrets encrypted, with a key that is generated once and kept under the data
	// directory. Secrets that are already stored are encrypted when they are next written.
	EncryptSecrets bool `json:"encryptSecrets"`
}

// NodeConfig is OpenShift 3's configuration of a node with a block of ours.
type NodeConfig struct {
	legacyv1.NodeConfig `json:",inline"`

	// Slipway holds what OpenShift 3 has no key for; it may be left out.
	Slipway NodeExtension `json:"slipway"`
}

// NodeExtension is the block `slipway` of a NodeConfig: the names and directories that a host claims
// on its machine. Hosts that share a machine or its network need different ones.
type NodeExtension struct {
	// Bridge is the network bridge that pods are connected to, at most 15 characters, `slipway0` by default.
	Bridge string `json:"bridge"`
	// DNSDevice is the network device that holds the address of dnsBindAddress, at most 15
	// characters, `slipway-dns` by default.
	DNSDevice string `json:"dnsDevice"`
	// NFTTable is the nftables table of the pod network's rules, `slipway` by default.
	NFTTable string `json:"nftTable"`
	// CgroupRoot is the control group that pods and the host's own processes live under, `/slipway` by default.
	CgroupRoot string `json:"cgroupRoot"`
	// ContainerdDirectory holds images, layers and containers, `<data>/containerd` by default.
	ContainerdDirectory string `json:"containerdDirectory"`
	// ImageDirectory holds the image archives that are loaded at each start, `<data>/images` by default.
	ImageDirectory string `json:"imageDirectory"`
	// RegistryConfigDirectory holds mirrors and certificates of registries in containerd's layout
	// (`<registry>/hosts.toml`), `<data>/registries.d` by default.
	RegistryConfigDirectory string `json:"registryConfigDirectory"`
	// RunDirectory holds sockets and the state of this boot, `<data>/run` by default. Its path should be
	// short: the kernel limits a socket's path to 107 bytes.
	RunDirectory string `json:"runDirectory"`
}
