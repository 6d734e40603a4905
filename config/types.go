package config

import (
	legacyv1 "github.com/openshift/api/legacyconfig/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MasterConfig is OpenShift 3's master configuration with an additional `slipway` block.
type MasterConfig struct {
	legacyv1.MasterConfig `json:",inline"`

	// TemplateServiceBrokerConfig configures the template service broker. OpenShift 3 has this
	// block, but the current OpenShift types have no field for it.
	TemplateServiceBrokerConfig TemplateServiceBrokerConfig `json:"templateServiceBrokerConfig"`
	// AnsibleServiceBrokerConfig configures the Ansible service broker. In OpenShift 3, these settings
	// are in the broker's own configuration.
	AnsibleServiceBrokerConfig AnsibleServiceBrokerConfig `json:"ansibleServiceBrokerConfig"`
	// Slipway contains settings for which OpenShift 3 has no key. It is optional.
	Slipway MasterExtension `json:"slipway"`
}

// TemplateServiceBrokerConfig configures the template service broker.
type TemplateServiceBrokerConfig struct {
	// TemplateNamespaces lists the projects whose templates the broker offers as services. The
	// default is `openshift`.
	TemplateNamespaces []string `json:"templateNamespaces"`
}

// AnsibleServiceBrokerConfig configures the Ansible service broker.
type AnsibleServiceBrokerConfig struct {
	// Namespaces lists the projects whose image streams the broker offers as services if their
	// images are Ansible playbook bundles. The default is `openshift`. An empty list disables the
	// broker, unless there are Registries.
	Namespaces []string `json:"namespaces"`
	// WhiteList contains regular expressions. The name of a bundle's image stream must match at
	// least one expression. The default is `-apb$`, or all names if there is a BlackList.
	WhiteList []string `json:"whiteList"`
	// BlackList contains regular expressions. The broker does not offer bundles whose image stream
	// has a matching name. BlackList takes precedence over WhiteList.
	BlackList []string `json:"blackList"`
	// Registries lists additional registries with bundles. The cluster imports their images into the
	// openshift-ansible-service-broker project, and uses the pull secrets in this project.
	Registries []AnsibleBrokerRegistry `json:"registries"`
	// Secrets lists secrets whose keys are variables of bundles.
	Secrets []AnsibleBrokerSecret `json:"secrets"`
	// SandboxRole is the cluster role that a bundle has in an instance's project while the bundle
	// is running. The default is `edit`. Users must have the role's permissions to request
	// services.
	SandboxRole string `json:"sandboxRole"`
	// KeepNamespace keeps the namespaces in which bundles have run.
	KeepNamespace bool `json:"keepNamespace"`
	// KeepNamespaceOnError keeps the namespaces of bundles that have failed.
	KeepNamespaceOnError bool `json:"keepNamespaceOnError"`
}

// AnsibleBrokerSecret is a secret whose keys are variables of a bundle.
type AnsibleBrokerSecret struct {
	// Title describes the secret.
	Title string `json:"title"`
	// Secret is the name of a secret in the openshift-ansible-service-broker project.
	Secret string `json:"secret"`
	// ApbName is the name of the bundle's image stream.
	ApbName string `json:"apbName"`
}

// AnsibleBrokerRegistry is a registry with Ansible playbook bundles.
type AnsibleBrokerRegistry struct {
	// Name is the name of the registry, a DNS label. The names of the registry's image streams
	// begin with it.
	Name string `json:"name"`
	// Type is `openshift` for a list of images, `dockerhub` for all images of an organization, or
	// `local_openshift` for other projects of the cluster.
	Type string `json:"type"`
	// URL is the URL of the registry, such as `https://registry.example.com:5000`.
	URL string `json:"url"`
	// Org is the organization of a registry with the type `dockerhub`. The registry must support
	// listing its images. Docker Hub does not support this.
	Org string `json:"org"`
	// Images lists the names of images without tags, such as `team/db-apb`, for the type
	// `openshift`.
	Images []string `json:"images"`
	// Tag is the tag of all images. The default is `latest`.
	Tag string `json:"tag"`
	// Namespaces lists the projects of a registry with the type `local_openshift`.
	Namespaces []string `json:"namespaces"`
	// Insecure disables the verification of the registry's certificate.
	Insecure bool `json:"insecure"`
	// WhiteList and BlackList select bundles by the last component of the image's name. They have
	// the same defaults as the broker's own lists.
	WhiteList []string `json:"whiteList"`
	BlackList []string `json:"blackList"`
}

// MasterExtension is the `slipway` block in a MasterConfig.
type MasterExtension struct {
	// CertificateLifetime is the validity period of issued certificates. The default is one year.
	// Slipway renews a certificate when a third of its lifetime is left.
	CertificateLifetime metav1.Duration `json:"certificateLifetime"`
	// CALifetime is the validity period of a certificate authority (CA). The default is ten years.
	// It applies when the first start creates the CA.
	CALifetime metav1.Duration `json:"caLifetime"`
	// EncryptSecrets encrypts Secrets, routes, OAuth clients and OAuth tokens in etcd. It is true by
	// default. On the first start, Slipway generates the key and stores it in pki/encryption.yaml
	// below the data directory. After a change to this setting, Slipway rewrites stored objects in the
	// background.
	EncryptSecrets *bool `json:"encryptSecrets"`
	// Registry configures the cluster's own image registry.
	Registry Registry `json:"registry"`
	// Outbound defines the servers that Slipway can connect to on behalf of users.
	Outbound Outbound `json:"outbound"`
	// Descheduler evicts pods that fit better on other nodes. It is disabled by default.
	Descheduler Descheduler `json:"descheduler"`
	// EtcdSnapshots configures the copies of etcd's database that each master saves periodically.
	EtcdSnapshots EtcdSnapshots `json:"etcdSnapshots"`
	// EtcdMaintenance configures the defragmentation of etcd's database files.
	EtcdMaintenance EtcdMaintenance `json:"etcdMaintenance"`
}

// EtcdMaintenance configures when etcd's database files are defragmented.
type EtcdMaintenance struct {
	// Disabled disables the maintenance. An administrator must then defragment the files, and
	// disarm etcd's alarm when its database is full.
	Disabled bool `json:"disabled"`
	// Interval is the interval between checks. The default is one minute.
	Interval metav1.Duration `json:"interval"`
	// FreeSpace is how much unused space a file must have before it is defragmented. The default is
	// 256Mi. In addition, at least half of the file must be unused, unless the file is large.
	FreeSpace string `json:"freeSpace"`
}

// EtcdSnapshots configures the copies of etcd's database that a master saves.
type EtcdSnapshots struct {
	// Disabled stops the creation of copies. Existing copies remain.
	Disabled bool `json:"disabled"`
	// Interval is the interval between copies. The default is twelve hours.
	Interval metav1.Duration `json:"interval"`
	// Keep is the number of copies to keep. The default is five.
	Keep int `json:"keep"`
	// Directory is the directory for the copies. The default is `<data>/snapshots`. Choose a
	// directory that is not on etcd's disk, so that the copies survive the loss of that disk.
	Directory string `json:"directory"`
	// Configuration is a file in the format of distribution's registry. If it is set, the copies are
	// also stored in `etcd-snapshots/NODE` in the storage that the file's `storage` section
	// configures, such as S3. It is optional.
	Configuration string `json:"configuration"`
}

// Descheduler configures the control plane's descheduler. The descheduler can also run in a Job, as
// in OpenShift 3.
type Descheduler struct {
	// PolicyConfigFile is a file that contains a DeschedulerPolicy. If it is not set, the
	// descheduler is disabled.
	PolicyConfigFile string `json:"policyConfigFile"`
	// Interval is the interval between passes. The default is five minutes.
	Interval metav1.Duration `json:"interval"`
	// DryRun means that a pass only logs the pods that it would evict.
	DryRun bool `json:"dryRun"`
}

// Outbound configures the servers that Slipway can connect to on behalf of users: the registries of
// imported images, and the servers to which these registries redirect. By default, Slipway does not
// connect to loopback and link-local addresses, or to the networks of the host, pods and services.
// It always allows the cluster's own registry and the registries in
// imagePolicyConfig.allowedRegistriesForImport whose names do not contain a wildcard.
type Outbound struct {
	// AllowedNetworks lists networks that are allowed, such as `192.0.2.0/24`.
	AllowedNetworks []string `json:"allowedNetworks"`
	// AllowedHosts lists servers that are allowed at any address: a name with a port, such as
	// `registry.example.com:5000`, or only a name, which allows ports 80 and 443.
	AllowedHosts []string `json:"allowedHosts"`
}

// Registry configures the cluster's image registry.
type Registry struct {
	// Disabled disables the registry. The images remain on the disk.
	Disabled bool `json:"disabled"`
	// BindAddress is the address on which the registry listens. The default is `0.0.0.0:5000`.
	BindAddress string `json:"bindAddress"`
	// Directory is the directory for the images. The default is `<data>/registry`.
	Directory string `json:"directory"`
	// Configuration is a file in the format of distribution's registry, such as OpenShift 3's
	// /config.yml. The file's `storage` section takes precedence over Directory, for example to store
	// images in S3. Slipway ignores the rest of the file.
	Configuration string `json:"configuration"`
	// ReadOnly causes the registry to reject pushes, for example during a backup of the directory.
	ReadOnly bool `json:"readOnly"`
	// SignatureDirectory is a directory whose files specify the signature stores of other
	// registries, in the format of podman and skopeo (registries.d). The default is
	// `/etc/containers/registries.d`.
	SignatureDirectory string `json:"signatureDirectory"`
	// Reserve is the disk space on Directory's disk that pushes must leave free: a quantity such as
	// `10Gi`, or a percentage. The default is `16%`. Usually, etcd and the kubelet use the same
	// disk, and the kubelet evicts pods when less than 15% of the disk is free.
	Reserve string `json:"reserve"`
	// ProjectQuota is the maximum size, in bytes, of a project's images in the registry, or `none`.
	// The default is `50Gi`. The namespace annotation slipway.openshift.io/registry-quota overrides
	// it for one project.
	ProjectQuota string `json:"projectQuota"`
}

// NodeConfig is OpenShift 3's node configuration with an additional `slipway` block.
type NodeConfig struct {
	legacyv1.NodeConfig `json:",inline"`

	// Slipway contains settings for which OpenShift 3 has no key. It is optional.
	Slipway NodeExtension `json:"slipway"`
}

// Values of NodeExtension.PodConnections.
const (
	PodConnectionsDirect = "direct"
	PodConnectionsStack  = "stack"
)

// NodeExtension is the `slipway` block in a NodeConfig. It includes the names and directories that
// a host uses on its machine. Hosts that share a machine or a network namespace must use different
// names and directories.
type NodeExtension struct {
	// Bridge is the name of the network bridge that connects the pods, at most 15 characters. The
	// default is `slipway0`.
	Bridge string `json:"bridge"`
	// DNSDevice is the name of the network device that has the address in dnsBindAddress, at most
	// 15 characters. The default is `slipway-dns`.
	DNSDevice string `json:"dnsDevice"`
	// VXLANDevice is the name of the VXLAN device for traffic to pods on other hosts, at most 15
	// characters. The default is `vxlan_sys_4789`.
	VXLANDevice string `json:"vxlanDevice"`
	// PodTransport defines how pods' packets reach other hosts. `auto`, the default, sends packets
	// directly to hosts on the same network segment, and in VXLAN to all other hosts. `vxlan` sends
	// all packets in VXLAN. `host-gw` sends all packets directly and cannot reach hosts on other
	// segments. All hosts must use the same value.
	PodTransport string `json:"podTransport"`
	// PodConnections is the path of TCP packets between this host's pods and pods on other hosts. With
	// `direct`, the default, they bypass the host's network stack if no network policy restricts them.
	// With `stack`, they pass through it, so that other programs' rules at the forward hook apply to
	// them.
	PodConnections string `json:"podConnections"`
	// BalancerAddress is the address at which a master's node connects to the API servers of all
	// masters, if there are several masters. The default is `127.0.0.1:8442`. Other hosts do not
	// use it.
	BalancerAddress string `json:"balancerAddress"`
	// NFTTable is the name of the nftables table that contains the pod network's rules. The default
	// is `slipway`.
	NFTTable string `json:"nftTable"`
	// CgroupRoot is the cgroup for pods and the host's own processes. The default is `/slipway`,
	// with a suffix if the data directory is not the default directory.
	CgroupRoot string `json:"cgroupRoot"`
	// ContainerdDirectory is the directory for images, layers and containers. The default is
	// `<data>/containerd`.
	ContainerdDirectory string `json:"containerdDirectory"`
	// ImageDirectory is a directory with image archives that are loaded on each start. The default is
	// `<data>/images`.
	ImageDirectory string `json:"imageDirectory"`
	// RegistryConfigDirectory is a directory with the mirrors and certificates of registries in
	// containerd's layout (`<registry>/hosts.toml`). The default is `<data>/registries.d`.
	RegistryConfigDirectory string `json:"registryConfigDirectory"`
	// SignaturePolicy is the file that determines which images the node is allowed to pull, in the
	// format of podman and skopeo. The default is `/etc/containers/policy.json`. If the file does
	// not exist, the node can pull all images.
	SignaturePolicy string `json:"signaturePolicy"`
	// SignatureDirectory is a directory whose files specify the signature stores of registries, in
	// the format of podman and skopeo (registries.d). The default is
	// `/etc/containers/registries.d`.
	SignatureDirectory string `json:"signatureDirectory"`
	// RunDirectory is the directory for sockets and for state that is valid until the next reboot.
	// The default is `<data>/run`. Keep its path short: the kernel limits the path of a socket to
	// 107 bytes.
	RunDirectory string `json:"runDirectory"`
	// FlexVolume adjusts calls to FlexVolume drivers. The key is the driver's name as in a volume's
	// `flexVolume.driver` (`example.com/loop`). The settings also apply to the control plane on the
	// same host. A driver without an entry uses the defaults.
	FlexVolume map[string]FlexVolumeDriver `json:"flexVolume"`
	// LocalStorage configures the volumes of the default StorageClass, which are stored on the
	// node's own disk.
	LocalStorage LocalStorage `json:"localStorage"`
	// Shutdown configures how long pods can take to terminate when the machine shuts down.
	Shutdown Shutdown `json:"shutdown"`
	// Router configures the router that serves routes on the host's own ports.
	Router Router `json:"router"`
}

// Shutdown configures how long pods can take to terminate when the machine shuts down or reboots.
// It requires systemd-logind. On a machine without systemd-logind, pods are terminated immediately.
type Shutdown struct {
	// Period is how long all pods together can take. The default is `30s`; `0s` means that pods are
	// terminated immediately.
	Period *metav1.Duration `json:"period"`
	// Critical is the last part of Period. It is reserved for the termination of pods with the
	// priority class `system-cluster-critical` or higher. The default is `10s`.
	Critical *metav1.Duration `json:"critical"`
}

// Router configures a node's router.
type Router struct {
	// Disabled disables the node's router.
	Disabled bool `json:"disabled"`
	// Environment contains environment variables of OpenShift 3's router, such as
	// `ROUTER_STRICT_SNI: "true"`.
	Environment map[string]string `json:"environment"`
}

// LocalStorage configures the volumes of the local.csi.slipway.io driver on a node: their directory
// and the disk space that they can use.
type LocalStorage struct {
	// Disabled disables the driver on the node. A control plane on the same host then does not
	// create the default StorageClass. Existing volumes remain on the disk but are unusable.
	Disabled bool `json:"disabled"`
	// Directory is the directory for the volumes. The default is `<data>/storage`. Use a separate
	// disk with XFS or Btrfs for fast snapshots and clones.
	Directory string `json:"directory"`
	// Reserve is the disk space that volumes must leave free: a quantity such as `10Gi`, or a
	// percentage. The default is `5%`.
	Reserve string `json:"reserve"`
	// OvercommitPercent is the maximum total size of volumes, as a percentage of the usable disk
	// space. With the default of 100, every volume can be filled completely. With 200, the volumes'
	// total size can be twice the disk space.
	OvercommitPercent int `json:"overcommitPercent"`
}

// FlexVolumeDriver adjusts the calls to one FlexVolume driver. Changes take effect on the next
// start.
type FlexVolumeDriver struct {
	// Timeouts contains the timeout for each operation. If a call exceeds its timeout, the driver
	// is killed. The operations are `init`, `getvolumename`, `attach`, `waitforattach`,
	// `isattached`, `mountdevice`, `mount`, `expandvolume`, `expandfs`, `unmount`, `unmountdevice`,
	// `detach`. The default is one minute for init, getvolumename and isattached, 30 minutes for
	// mountdevice and expandfs, and 10 minutes for all other operations.
	Timeouts map[string]metav1.Duration `json:"timeouts"`
	// Concurrency is the maximum number of concurrent calls to the driver on the host's node, and
	// separately in its control plane. The default is 32.
	Concurrency int `json:"concurrency"`
	// VolumeName is the source of the volume name, which is passed to detach and is part of the
	// paths of mounted devices. `driver`, the default, uses the result of getvolumename. `pv` uses
	// the name of the PersistentVolume, as in Kubernetes.
	VolumeName string `json:"volumeName"`
}
