// Package nodeprocess creates the components of the `slipway node` process.
package nodeprocess

import (
	"context"
	"net"
	"path/filepath"

	"github.com/slipway-platform/slipway/apigroup/apps/rollout"
	"github.com/slipway-platform/slipway/config"
	"github.com/slipway-platform/slipway/internal/arguments"
	"github.com/slipway-platform/slipway/kube/volumeplugin"
	"github.com/slipway-platform/slipway/network/policy"
	"github.com/slipway-platform/slipway/network/vrrp"
	"github.com/slipway-platform/slipway/network/vxlan"
	"github.com/slipway-platform/slipway/node"
	"github.com/slipway-platform/slipway/node/disk"
	"github.com/slipway-platform/slipway/node/hostreport"
	"github.com/slipway-platform/slipway/node/image"
	"github.com/slipway-platform/slipway/pki"
	"github.com/slipway-platform/slipway/platform/host"
	"github.com/slipway-platform/slipway/platform/table"
	"github.com/slipway-platform/slipway/router/haproxy"
	"github.com/slipway-platform/slipway/storage/flexvolume"
	"github.com/slipway-platform/slipway/supervisor"
	"github.com/slipway-platform/slipway/supervisor/component"
)

// Host is a host together with the objects that the components of its node share.
type Host struct {
	*host.Host
	// masterServes receives a value when the balancer observes that a master has started.
	masterServes chan struct{}
	allReady     chan struct{} // closed when all components of the process are ready
	// drivers contains the node's FlexVolume drivers. attachments contains its volume attachments.
	drivers     *flexvolume.Registry
	attachments *volumeplugin.Attachments
	// dnsNames contains the DNS names in egress firewalls, which the pods' DNS server resolves.
	dnsNames *policy.Names
	// resolvable contains the names that the pods' DNS server resolves for each pod.
	resolvable *policy.Resolvable
	// tunnel is the node's VXLAN device, which two components share.
	tunnel *vxlan.Tunnel
}

// New returns a host that can run the node.
func New(h *host.Host) *Host {
	names := policy.NewNames()
	names.IPv6 = h.Master.DualStack().Enabled()
	return &Host{
		Host: h, masterServes: make(chan struct{}, 1), allReady: make(chan struct{}),
		drivers: h.Drivers(host.Node), attachments: h.Attachments(host.Node),
		dnsNames: names, resolvable: policy.NewResolvable(h.ResolvableFile()), tunnel: &vxlan.Tunnel{},
	}
}

// Components creates the node's components.
func (h *Host) Components() ([]component.Entry, error) { return Table(h.Joined()).Build(h, nil) }

// Started signals to the components that all of them are ready.
func (h *Host) Started() { close(h.allReady) }

// Table lists the components that `slipway node` runs. They connect to the control plane over
// the network, as on a host that runs only a node. A joined host has additional components.
func Table(joined bool) table.Table[*Host] {
	components := table.Table[*Host]{
		{Name: "balancer", Build: (*Host).balancer},
		{Name: "api", After: []string{"balancer"}, Build: (*Host).apiAccess},
		{Name: "images", Build: (*Host).images},
		{Name: "disk-guard", Build: (*Host).diskGuard},
		{Name: "flexvolume", Build: (*Host).flexVolumes},
		{Name: "flexvolume-cleanup", After: []string{"flexvolume"}, Build: (*Host).flexVolumeCleanup},
		{Name: "flexvolume-report", After: []string{"kubelet"}, Build: (*Host).flexVolumeReport},
		{Name: "image-service", Build: (*Host).imageService},
		{Name: "registry-address", After: []string{"api"}, Build: (*Host).registryAddress},
		{Name: "node-config", Build: (*Host).nodeConfig},
		{Name: "host-report", After: []string{"kubelet"}, Build: (*Host).hostReport},
		{Name: "kubelet", After: []string{"api", "images", "image-service", "flexvolume-cleanup"}, Build: (*Host).kubelet},
		{Name: "local-storage", After: []string{"kubelet"}, Build: (*Host).localStorage},
		{Name: "network-policy", After: []string{"api"}, Build: (*Host).networkPolicy},
		{Name: "network", After: []string{"network-policy"}, Build: (*Host).network},
		{Name: "bandwidth", After: []string{"network"}, Build: (*Host).bandwidth},
		{Name: "dns", After: []string{"network"}, Build: (*Host).dns},
		{Name: "router", After: []string{"network"}, Build: (*Host).router},
		{Name: "idling", After: []string{"network"}, Build: (*Host).idling},
		// Start the proxy after the network component, because the Node then exists. Without the
		// Node, the upstream proxy would retry only after a second.
		{Name: "proxy", After: []string{"network"}, Build: (*Host).proxy},
	}
	if joined {
		components = append(components,
			table.Entry[*Host]{Name: "certificates", After: []string{"balancer"}, Build: (*Host).memberCertificates},
			table.Entry[*Host]{Name: "cluster-settings", After: []string{"balancer"}, Build: (*Host).clusterSettings},
		)
	}
	return components
}

func (h *Host) apiAccess() (component.Component, error) {
	access := &node.APIAccess{}
	type grant struct{ kubeconfig, path string }
	grants := []grant{
		{h.Credentials.AgentKubeconfig, "/api/v1/nodes"},
		{h.Credentials.AgentKubeconfig, "/apis/network.openshift.io/v1/egressnetworkpolicies"},
		{h.Credentials.DNSKubeconfig, "/api/v1/namespaces"},
		{h.Credentials.IdlingKubeconfig, "/api/v1/services"},
	}
	if h.runsRouter() {
		grants = append(grants, grant{h.Credentials.RouterKubeconfig, "/apis/route.openshift.io/v1/routes"})
	}
	for _, grant := range grants {
		client, err := pki.ReadKubeconfig(grant.kubeconfig)
		if err != nil {
			return nil, err
		}
		access.Grants = append(access.Grants, node.Grant{Client: client, Path: grant.path})
	}
	return access, nil
}

// busybox is the path of the program in Debian's busybox-static package.
const busybox = "/bin/busybox"

func (h *Host) images() (component.Component, error) {
	programs, err := h.Programs()
	if err != nil {
		return nil, err
	}
	client, err := pki.NewClient(h.Credentials.NodeKubeconfig)
	if err != nil {
		return nil, err
	}
	return image.Loader{
		Store:      image.Store{Socket: h.ContainerdSocket()},
		Pause:      programs.Pause,
		Runc:       programs.Runc,
		Busybox:    busybox,
		Executable: "/proc/self/exe",
		HAProxy:    haproxy.FindProgram,
		Keepalived: vrrp.FindImagePrograms,
		Archives:   h.Node.Slipway.ImageDirectory,
		NodeReady:  h.allReady,
		HasDeployer: func(ctx context.Context) error {
			return node.Label{Client: client, Node: h.Node.NodeName, Name: rollout.ImageLabel}.TrySet(ctx)
		},
	}, nil
}

// imageService returns the component that pulls pod images.
func (h *Host) imageService() (component.Component, error) {
	reserve, err := node.PullReserve(arguments.Map(h.Node.KubeletArguments))
	if err != nil {
		return nil, err
	}
	records, err := node.NewPullRecords(h.Node.VolumeDirectory)
	if err != nil {
		return nil, err
	}
	return &image.Service{
		Store: image.Store{Socket: h.ContainerdSocket()}, Socket: h.ImageSocket(),
		RegistryConfigDir: h.Node.Slipway.RegistryConfigDirectory, SignaturePolicy: h.Node.Slipway.SignaturePolicy,
		SignatureStores: h.Node.Slipway.SignatureDirectory, Dialer: h.Outbound(),
		Directory: h.Node.Slipway.ContainerdDirectory, Reserve: reserve, HasPullRecord: records.Has,
	}, nil
}

// hostReport returns the component that publishes the host's state on its Node object.
func (h *Host) hostReport() (component.Component, error) {
	client, err := pki.NewClient(h.Credentials.NodeKubeconfig)
	if err != nil {
		return nil, err
	}
	return &hostreport.Reporter{
		Client: client, Node: h.Node.NodeName, Status: supervisor.NewClient(h.Socket()).Status,
		CertificateDirs: []string{h.Path("pki")},
	}, nil
}

// diskGuard returns the component that prevents pods from filling the disks that contain etcd's
// data and the platform's files.
func (h *Host) diskGuard() (component.Component, error) {
	dirs := []string{h.DataDir}
	if !h.Joined() {
		dirs = append(dirs, h.Master.EtcdDirectory())
	}
	return &disk.Guard{
		Dirs:     dirs,
		PodGroup: filepath.Join(h.Node.Slipway.CgroupRoot, "kubepods"), LogDir: h.PodLogs(),
	}, nil
}

func (h *Host) kubelet() (component.Component, error) {
	kubelet, err := h.newKubelet(h.Node)
	if err != nil {
		return nil, err
	}
	bundle := h.Path("node", "kubelet-client-ca.crt")
	if kubelet.ClientCAFile, err = node.ClientCAFile(h.Credentials.NodeCA, h.Node.KubeletClientCA(), bundle); err != nil {
		return nil, err
	}
	return kubelet, nil
}

// newKubelet returns this host's kubelet, configured as c specifies.
func (h *Host) newKubelet(c *config.NodeConfig) (*node.Kubelet, error) {
	bind, port := c.KubeletAddress()
	manifests, interval := c.ManifestDir()
	authentication, authorization := c.CacheTTLs()
	var connection node.Connection
	if overrides := c.MasterClientConnectionOverrides; overrides != nil {
		connection = node.Connection{ContentType: overrides.ContentType, QPS: overrides.QPS, Burst: overrides.Burst}
	}
	reserve, err := node.ReserveOf(c.VolumeDirectory)
	if err != nil {
		return nil, err
	}
	prober := volumeplugin.NewProber(h.drivers, volumeplugin.Options{InUse: h.usesDriver, Attachments: h.attachments})
	return &node.Kubelet{
		NodeName:          c.NodeName,
		NodeIP:            h.Address.AsSlice(),
		SecondNodeIP:      h.SecondAddress,
		BindAddress:       net.ParseIP(bind),
		Port:              port,
		CertFile:          h.Credentials.KubeletServer.Cert,
		KeyFile:           h.Credentials.KubeletServer.Key,
		ClientCAFile:      h.Credentials.NodeCA,
		Joined:            h.Joined(),
		Kubeconfig:        h.Credentials.NodeKubeconfig,
		RootDirectory:     c.VolumeDirectory,
		GroupQuota:        c.GroupQuota(),
		CertDirectory:     h.Path("pki", "kubelet"),
		PodLogsDirectory:  h.PodLogs(),
		Shutdown:          node.Shutdown{Period: c.Slipway.Shutdown.Period.Duration, Critical: c.Slipway.Shutdown.Critical.Duration},
		RuntimeSocket:     h.ContainerdSocket(),
		ImageSocket:       h.ImageSocket(),
		CgroupRoot:        c.Slipway.CgroupRoot,
		Reserve:           reserve,
		DNSIP:             c.ResolverIP(),
		Domain:            c.DNSDomain,
		ResolvConf:        node.HostResolvConf(),
		ManifestDirectory: manifests,
		ManifestInterval:  interval,
		AuthenticationTTL: authentication,
		AuthorizationTTL:  authorization,
		CacheSizes:        node.CacheSizes{Authentication: c.AuthConfig.AuthenticationCacheSize, Authorization: c.AuthConfig.AuthorizationCacheSize},
		Connection:        connection,
		VolumePluginDir:   c.VolumePluginDir(),
		Prober:            prober,
		OtherNetwork:      h.Master.HasOtherNetwork(),
		Arguments:         arguments.Map(c.KubeletFlags()),
	}, nil
}

func (h *Host) proxy() (component.Component, error) {
	bridge := h.Node.Slipway.Bridge
	if h.Master.HasOtherNetwork() {
		bridge = ""
	}
	return &node.Proxy{
		NodeName:      h.Node.NodeName,
		Kubeconfig:    h.Credentials.ProxyKubeconfig,
		Bridge:        bridge,
		Pods:          h.Master.PodNetworks(),
		HealthAddress: h.Node.ProxyHealthAddress(),
		SyncPeriod:    h.Node.SyncPeriod(),
		Arguments:     arguments.Map(h.Node.ProxyFlags()),
	}, nil
}
