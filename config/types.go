package config

import (
	legacyv1 "github.com/openshift/api/legacyconfig/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MasterConfig is OpenShift 3's configuration of a master with the additional block `slipway`.
type MasterConfig struct {
	legacyv1.MasterConfig `json:",inline"`

	// TemplateServiceBrokerConfig is a block of OpenShift 3 that its current types no longer have.
	TemplateServiceBrokerConfig TemplateServiceBrokerConfig `json:"templateServiceBrokerConfig"`
	// AnsibleServiceBrokerConfig configures the Ansible service broker. In OpenShift 3, these settings
	// are in the broker's own configuration.
	AnsibleServiceBrokerConfig AnsibleServiceBrokerConfig `json:"ansibleServiceBrokerConfig"`
	// Slipway contains settings that OpenShift 3 has no key for. It is optional.
	Slipway MasterExtension `json:"slipway"`
}

// TemplateServiceBrokerConfig configures the template service broker.
type TemplateServiceBrokerConfig struct {
	// TemplateNamespaces are the projects whose templates the broker offers as services,
	// `openshift` by default.
	TemplateNamespaces []string `json:"templateNamespaces"`
}

// AnsibleServiceBrokerConfig configures the Ansible service broker.
type AnsibleServiceBrokerConfig struct {
	// Namespaces are the projects whose image streams the broker offers as services if their images
	// are Ansible playbook bundles, `openshift` by default. An empty list turns the broker off.
	Namespaces []string `json:"namespaces"`
	// WhiteList contains regular expressions. The name of a bundle's image stream must match one of
	// them. The default is `-apb$`, or all names if there is a BlackList.
	WhiteList []string `json:"whiteList"`
	// BlackList contains regular expressions for names that the broker does not offer. It takes
	// precedence over WhiteList.
	BlackList []string `json:"blackList"`
	// SandboxRole is the cluster role that a bundle has in the project of an instance while it runs,
	// `edit` by default. Users need its permissions to order services.
	SandboxRole string `json:"sandboxRole"`
	// KeepNamespace keeps the namespaces in which bundles have run.
	KeepNamespace bool `json:"keepNamespace"`
	// KeepNamespaceOnError keeps the namespaces of bundles that have failed.
	KeepNamespaceOnError bool `json:"keepNamespaceOnError"`
}

// MasterExtension is the block `slipway` of a MasterConfig.
type MasterExtension struct {
	// CertificateLifetime is the validity period of an issued certificate, one year by default.
	// Slipway renews a certificate when a third of its lifetime is left.
	CertificateLifetime metav1.Duration `json:"certificateLifetime"`
	// CALifetime is the validity period of a certificate authority, ten years by default. It
	// applies when the first start creates the authority.
	CALifetime metav1.Duration `json:"caLifetime"`
	// EncryptSecrets encrypts Secrets, routes, OAuth clients and OAuth tokens in etcd. It is true
	// by default. The first start generates the key, pki/encryption.yaml below the data directory.
	// After a change, Slipway rewrites stored objects in the background.
	EncryptSecrets *bool `json:"encryptSecrets"`
	// Registry configures the cluster's own image registry.
	Registry Registry `json:"registry"`
	// Outbound limits the servers to which Slipway connects on behalf of users.
	Outbound Outbound `json:"outbound"`
	// Descheduler evicts pods that fit better on other nodes. It is off by default.
	Descheduler Descheduler `json:"descheduler"`
	// EtcdSnapshots are copies of etcd's database, which each master saves at intervals.
	EtcdSnapshots EtcdSnapshots `json:"etcdSnapshots"`
	// EtcdMaintenance keeps the files of etcd's database small.
	EtcdMaintenance EtcdMaintenance `json:"etcdMaintenance"`
}

// EtcdMaintenance configures when the database files of etcd are defragmented.
type EtcdMaintenance struct {
	// Disabled turns the maintenance off. An administrator then defragments the files, and disarms the
	// alarm of a full etcd.
	Disabled bool `json:"disabled"`
	// Interval is the time between two checks, one minute by default.
	Interval metav1.Duration `json:"interval"`
	// FreeSpace is the minimum unused space of a file that is defragmented, 256Mi by default. It must
	// also be half of the file, unless the file is large.
	FreeSpace string `json:"freeSpace"`
}

// EtcdSnapshots configures the copies of etcd's database that a master saves.
type EtcdSnapshots struct {
	// Disabled stops the copies. Existing copies remain.
	Disabled bool `json:"disabled"`
	// Interval is the time between two copies, twelve hours by default.
	Interval metav1.Duration `json:"interval"`
	// Keep is the number of copies to keep, five by default.
	Keep int `json:"keep"`
	// Directory contains the copies, `<data>/snapshots` by default. Use a disk other than etcd's, so
	// that the copies survive the loss of etcd's disk.
	Directory string `json:"directory"`
	// Configuration is a file in the format of distribution's registry. The storage of its section
	// `storage`, such as S3, gets the same copies, in `etcd-snapshots/NODE`. It is optional.
	Configuration string `json:"configuration"`
}

// Descheduler configures the descheduler of the control plane. A Job can run it, too, as in
// OpenShift 3.
type Descheduler struct {
	// PolicyConfigFile is a DeschedulerPolicy. The descheduler is off without it.
	PolicyConfigFile string `json:"policyConfigFile"`
	// Interval is the time between two passes, five minutes by default.
	Interval metav1.Duration `json:"interval"`
	// DryRun only logs which pods a pass would evict.
	DryRun bool `json:"dryRun"`
}

// Outbound lists servers that Slipway can connect to on behalf of users: registries of imported
// images and the targets of their redirects. By default, Slipway does not connect to loopback and
// link-local addresses and the networks of the host, of pods and of services. It allows the
// cluster's own registry and the registries that imagePolicyConfig.allowedRegistriesForImport names
// without a wildcard.
type Outbound struct {
	// AllowedNetworks are allowed networks such as `192.0.2.0/24`.
	AllowedNetworks []string `json:"allowedNetworks"`
	// AllowedHosts are servers that are allowed at any address: `registry.example.com:5000`, or
	// only a name for the ports 80 and 443.
	AllowedHosts []string `json:"allowedHosts"`
}

// Registry configures the image registry of a cluster.
type Registry struct {
	// Disabled turns the registry off. Its images remain on the disk.
	Disabled bool `json:"disabled"`
	// BindAddress is the address that the registry listens on, `0.0.0.0:5000` by default.
	BindAddress string `json:"bindAddress"`
	// Directory contains its images, `<data>/registry` by default.
	Directory string `json:"directory"`
	// Configuration is a file in the format of distribution's registry, such as OpenShift 3's
	// /config.yml. Its section `storage` replaces Directory, for example to store images in S3.
	// Slipway ignores its other sections.
	Configuration string `json:"configuration"`
	// ReadOnly rejects pushes, for example during a backup of the directory.
	ReadOnly bool `json:"readOnly"`
	// SignatureDirectory contains files that name the signature stores of other registries, in the
	// format of podman and skopeo (registries.d). The default is `/etc/containers/registries.d`.
	SignatureDirectory string `json:"signatureDirectory"`
	// Reserve is the disk space of Directory that pushes leave free: a quantity such as `10Gi`, or
	// a percentage, `16%` by default. Usually etcd and the kubelet use the same disk, and the kubelet
	// evicts pods when less than 15% of it is free.
	Reserve string `json:"reserve"`
	// ProjectQuota limits the bytes of a project in the registry, `50Gi` by default, or `none`. The
	// annotation slipway.openshift.io/registry-quota of a namespace overrides it for one project.
	ProjectQuota string `json:"projectQuota"`
}

// NodeConfig is OpenShift 3's configuration of a node with the additional block `slipway`.
type NodeConfig struct {
	legacyv1.NodeConfig `json:",inline"`

	// Slipway contains settings that OpenShift 3 has no key for. It is optional.
	Slipway NodeExtension `json:"slipway"`
}

// NodeExtension is the block `slipway` of a NodeConfig: the names and directories that a host uses
// on its machine. Hosts that share a machine or its network need different ones.
type NodeExtension struct {
	// Bridge is the network bridge that pods are connected to, at most 15 characters, `slipway0` by
	// default.
	Bridge string `json:"bridge"`
	// DNSDevice is the network device with the address of dnsBindAddress, at most 15
	// characters, `slipway-dns` by default.
	DNSDevice string `json:"dnsDevice"`
	// VXLANDevice is the VXLAN device to the pods of other hosts, at most 15 characters,
	// `vxlan_sys_4789` by default.
	VXLANDevice string `json:"vxlanDevice"`
	// PodTransport is how packets of pods get to other hosts: `auto`, the default, sends them directly
	// to hosts on a network segment of this host, and in VXLAN to others; `vxlan` sends all packets in
	// VXLAN; `host-gw` sends all directly, and cannot reach hosts on other segments. Set it on all
	// hosts.
	PodTransport string `json:"podTransport"`
	// BalancerAddress is the address at which the node of one of several masters reaches the API
	// servers of all masters, `127.0.0.1:8442` by default. Other hosts do not use it.
	BalancerAddress string `json:"balancerAddress"`
	// NFTTable is the nftables table with the rules of the pod network, `slipway` by default.
	NFTTable string `json:"nftTable"`
	// CgroupRoot is the cgroup of pods and of the host's own processes: `/slipway`, with a suffix
	// if the data directory is not the default one.
	CgroupRoot string `json:"cgroupRoot"`
	// ContainerdDirectory contains images, layers and containers, `<data>/containerd` by default.
	ContainerdDirectory string `json:"containerdDirectory"`
	// ImageDirectory contains image archives that each start loads, `<data>/images` by default.
	ImageDirectory string `json:"imageDirectory"`
	// RegistryConfigDirectory contains mirrors and certificates of registries in containerd's
	// layout (`<registry>/hosts.toml`), `<data>/registries.d` by default.
	RegistryConfigDirectory string `json:"registryConfigDirectory"`
	// SignaturePolicy is the file that decides which images the node pulls, in the format of podman
	// and skopeo, `/etc/containers/policy.json` by default. Without the file, it pulls all.
	SignaturePolicy string `json:"signaturePolicy"`
	// SignatureDirectory contains files that name the signature stores of registries, in the format
	// of podman and skopeo (registries.d). The default is `/etc/containers/registries.d`.
	SignatureDirectory string `json:"signatureDirectory"`
	// RunDirectory contains sockets and the state of this boot, `<data>/run` by default. Keep its
	// path short: the kernel limits the path of a socket to 107 bytes.
	RunDirectory string `json:"runDirectory"`
	// FlexVolume adjusts calls of FlexVolume drivers. The key is the driver as in
	// `flexVolume.driver` of a volume (`example.com/loop`). It also applies to the control plane of
	// the same host. A driver without an entry uses the defaults.
	FlexVolume map[string]FlexVolumeDriver `json:"flexVolume"`
	// LocalStorage configures volumes of the default StorageClass, which are on the node's own
	// disk.
	LocalStorage LocalStorage `json:"localStorage"`
	// Shutdown is the time that pods have to end when the machine shuts down.
	Shutdown Shutdown `json:"shutdown"`
	// Router configures the router that serves routes on the host's own ports.
	Router Router `json:"router"`
}

// Shutdown is the time that pods have to end when the machine shuts down or reboots. It needs
// systemd-logind. On a machine without it, pods end immediately.
type Shutdown struct {
	// Period is the time for all pods, `30s` by default; `0s` waits for none.
	Period *metav1.Duration `json:"period"`
	// Critical is the last part of Period, `10s` by default, in which pods of the priority class
	// `system-cluster-critical` or higher end.
	Critical *metav1.Duration `json:"critical"`
}

// Router configures the router of a node.
type Router struct {
	// Disabled turns the router of the node off.
	Disabled bool `json:"disabled"`
	// Environment are the variables of OpenShift 3's router, such as `ROUTER_STRICT_SNI: "true"`.
	Environment map[string]string `json:"environment"`
}

// LocalStorage configures the volumes of the driver local.csi.slipway.io on a node: their directory
// and the disk space that they can use.
type LocalStorage struct {
	// Disabled turns the driver off on the node. A control plane on the same host then does not create
	// the default StorageClass. Existing volumes remain on the disk but are unusable.
	Disabled bool `json:"disabled"`
	// Directory contains the volumes, `<data>/storage` by default. Use a separate disk with XFS or
	// Btrfs for fast snapshots and clones.
	Directory string `json:"directory"`
	// Reserve is the disk space that volumes leave free: a quantity such as `10Gi`, or a
	// percentage, `5%` by default.
	Reserve string `json:"reserve"`
	// OvercommitPercent is the total size of volumes in percent of the usable disk space. With 100,
	// the default, every volume can be filled completely. 200 allows volumes of twice the disk
	// space.
	OvercommitPercent int `json:"overcommitPercent"`
}

// FlexVolumeDriver adjusts the calls of one FlexVolume driver. Changes apply at the next start.
type FlexVolumeDriver struct {
	// Timeouts are deadlines by operation, after which the driver is killed: `init`,
	// `getvolumename`, `attach`, `waitforattach`, `isattached`, `mountdevice`, `mount`,
	// `expandvolume`, `expandfs`, `unmount`, `unmountdevice`, `detach`. The default is one minute
	// for init, getvolumename and isattached, 30 minutes for mountdevice and expandfs, and 10
	// minutes for the others.
	Timeouts map[string]metav1.Duration `json:"timeouts"`
	// Concurrency limits the concurrent calls of the driver on the host's node, and separately on
	// its control plane. The default is 32.
	Concurrency int `json:"concurrency"`
	// VolumeName is the source of the volume name that detach gets and that is part of the paths of
	// mounted devices. `driver`, the default, is the result of getvolumename. `pv` is the name of
	// the PersistentVolume, as in Kubernetes.
	VolumeName string `json:"volumeName"`
}
