package config

import (
	legacyv1 "github.com/openshift/api/legacyconfig/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MasterConfig is OpenShift 3's configuration of a master with a block of ours.
type MasterConfig struct {
	legacyv1.MasterConfig `json:",inline"`

	// TemplateServiceBrokerConfig is a block of OpenShift 3 that the types no longer have.
	TemplateServiceBrokerConfig TemplateServiceBrokerConfig `json:"templateServiceBrokerConfig"`
	// Slipway holds what OpenShift 3 has no key for; it may be left out.
	Slipway MasterExtension `json:"slipway"`
}

// TemplateServiceBrokerConfig says what the template service broker offers.
type TemplateServiceBrokerConfig struct {
	// TemplateNamespaces are the projects whose templates are services of the broker, `openshift` by default.
	TemplateNamespaces []string `json:"templateNamespaces"`
}

// MasterExtension is the block `slipway` of a MasterConfig.
type MasterExtension struct {
	// CertificateLifetime is how long an issued certificate is valid, one year by default. It is
	// replaced when a third of it is left.
	CertificateLifetime metav1.Duration `json:"certificateLifetime"`
	// CALifetime is how long a certificate authority is valid, ten years by default. It counts when
	// the authority is created, at the first start.
	CALifetime metav1.Duration `json:"caLifetime"`
	// EncryptSecrets stores encrypted what holds secrets: Secrets, routes, OAuth clients and OAuth tokens. It is true by
	// default. The key is generated once, as pki/encryption.yaml below the data directory. Objects that are
	// already stored are rewritten in the background after a change.
	EncryptSecrets *bool `json:"encryptSecrets"`
	// Registry is the cluster's own image registry.
	Registry Registry `json:"registry"`
	// Outbound says where the platform connects for users.
	Outbound Outbound `json:"outbound"`
}

// Outbound says which servers users may have the platform connect to: registries that they import
// images from, and what those redirect to. The networks of the host, of pods, of services, loopback
// and link-local addresses are refused unless they are allowed here. The cluster's own registry and
// those that imagePolicyConfig.allowedRegistriesForImport names without a wildcard are allowed.
type Outbound struct {
	// AllowedNetworks are networks such as `192.0.2.0/24` that users may reach.
	AllowedNetworks []string `json:"allowedNetworks"`
	// AllowedHosts are servers that users may reach wherever they are: `registry.example.com:5000`,
	// or a name alone for the ports 80 and 443.
	AllowedHosts []string `json:"allowedHosts"`
}

// Registry is how the image registry of a cluster runs.
type Registry struct {
	// Disabled keeps it from running. Images that it holds stay on the disk.
	Disabled bool `json:"disabled"`
	// BindAddress is where it listens, `0.0.0.0:5000` by default.
	BindAddress string `json:"bindAddress"`
	// Directory holds its images, `<data>/registry` by default.
	Directory string `json:"directory"`
	// Configuration is a file in the format of distribution's registry, such as OpenShift 3's /config.yml, whose section `storage` counts in
	// place of Directory: for images in S3, with its credentials. Its other sections do not.
	Configuration string `json:"configuration"`
	// ReadOnly refuses pushes, for instance while the directory is saved.
	ReadOnly bool `json:"readOnly"`
	// SignatureDirectory holds files that name the signature stores of other registries, in the format of podman and skopeo (registries.d);
	// `/etc/containers/registries.d` by default.
	SignatureDirectory string `json:"signatureDirectory"`
	// Reserve is what pushes leave of the disk that holds Directory: a quantity such as `10Gi`, or a part of the disk, `16%` by default. The disk is usually
	// etcd's and kubelet's, too, and kubelet evicts pods when less than 15% of it is free.
	Reserve string `json:"reserve"`
	// ProjectQuota is how many bytes a project may have in the registry, `50Gi` by default, or `none`. The annotation
	// slipway.openshift.io/registry-quota of a namespace takes its place for one project.
	ProjectQuota string `json:"projectQuota"`
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
	// CgroupRoot is the control group that pods and the host's own processes live under: `/slipway`, with a suffix where the data directory is not the usual one.
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
	// FlexVolume adjusts how single FlexVolume drivers are called, by driver as in `flexVolume.driver` of a volume
	// (`example.com/loop`). It counts for the control plane of the same host too. A driver without an entry has the defaults.
	FlexVolume map[string]FlexVolumeDriver `json:"flexVolume"`
	// LocalStorage places the volumes of the default StorageClass, which are on the node's own disk.
	LocalStorage LocalStorage `json:"localStorage"`
	// Router configures the router on the host's own ports, which serves routes.
	Router Router `json:"router"`
}

// Router configures the router of a node.
type Router struct {
	// Disabled keeps the node from serving routes.
	Disabled bool `json:"disabled"`
	// Environment are the variables of OpenShift 3's router, such as `ROUTER_STRICT_SNI: "true"`.
	Environment map[string]string `json:"environment"`
}

// LocalStorage is where a node keeps volumes of the driver local.csi.slipway.io, and how much of its disk they may have.
type LocalStorage struct {
	// Disabled keeps the driver from running on the node, and the default StorageClass from being made by a control plane on the same host.
	// Volumes that exist stay as they are, and cannot be used.
	Disabled bool `json:"disabled"`
	// Directory holds the volumes, `<data>/storage` by default. A disk of its own with xfs or btrfs makes snapshots and clones a matter of a moment.
	Directory string `json:"directory"`
	// Reserve is what volumes leave of the disk: a quantity such as `10Gi`, or a part of the disk, `5%` by default.
	Reserve string `json:"reserve"`
	// OvercommitPercent is how much of the rest is promised to volumes. With 100, the default, every volume can be filled; with 200
	// twice as much is promised as there is.
	OvercommitPercent int `json:"overcommitPercent"`
}

// FlexVolumeDriver adjusts how one FlexVolume driver is called. Changes count from the next start.
type FlexVolumeDriver struct {
	// Timeouts are deadlines by operation, after which the driver is killed: `init`, `getvolumename`, `attach`, `waitforattach`,
	// `isattached`, `mountdevice`, `mount`, `expandvolume`, `expandfs`, `unmount`, `unmountdevice`, `detach`. By default a minute for
	// init, getvolumename and isattached, half an hour for mountdevice and expandfs, ten minutes for the others.
	Timeouts map[string]metav1.Duration `json:"timeouts"`
	// Concurrency bounds the calls of the driver that run at the same time on the host's node, and as many on its
	// control plane; 32 by default.
	Concurrency int `json:"concurrency"`
	// VolumeName says where a volume's name comes from that detach is called with and that stands in the paths of mounted devices:
	// `driver`, the answer to getvolumename, is the default; `pv` is the PersistentVolume's name, as in Kubernetes.
	VolumeName string `json:"volumeName"`
}
