package platform

import (
	"context"
	"net"
	"path/filepath"

	"github.com/slipway-platform/slipway/apigroup/apps/rollout"
	"github.com/slipway-platform/slipway/config"
	"github.com/slipway-platform/slipway/internal/arguments"
	"github.com/slipway-platform/slipway/kube/volumeplugin"
	"github.com/slipway-platform/slipway/network/vrrp"
	"github.com/slipway-platform/slipway/node"
	"github.com/slipway-platform/slipway/node/disk"
	"github.com/slipway-platform/slipway/node/hostreport"
	"github.com/slipway-platform/slipway/node/image"
	"github.com/slipway-platform/slipway/pki"
	"github.com/slipway-platform/slipway/router/haproxy"
	"github.com/slipway-platform/slipway/supervisor"
	"github.com/slipway-platform/slipway/supervisor/component"
)

// nodeTable lists the components that `slipway node` runs. They connect to the control plane over
// the network, as on a host that runs only a node.
func nodeTable() []entry {
	return []entry{
		{"balancer", nil, (*Host).balancer, ""},
		{"api", []string{"balancer"}, (*Host).apiAccess, ""},
		{"images", nil, (*Host).images, ""},
		{"disk-guard", nil, (*Host).diskGuard, ""},
		{"flexvolume", nil, (*Host).flexVolumes, ""},
		{"flexvolume-cleanup", []string{"flexvolume"}, (*Host).flexVolumeCleanup, ""},
		{"flexvolume-report", []string{"kubelet"}, (*Host).flexVolumeReport, ""},
		{"image-service", nil, (*Host).imageService, ""},
		{"registry-address", []string{"api"}, (*Host).registryAddress, ""},
		{"node-config", nil, (*Host).nodeConfig, ""},
		{"host-report", []string{"kubelet"}, (*Host).hostReport, ""},
		{"kubelet", []string{"api", "images", "image-service", "flexvolume-cleanup"}, (*Host).kubelet, ""},
		{"local-storage", []string{"kubelet"}, (*Host).localStorage, ""},
		{"network-policy", []string{"api"}, (*Host).networkPolicy, ""},
		{"network", []string{"network-policy"}, (*Host).network, ""},
		{"bandwidth", []string{"network"}, (*Host).bandwidth, ""},
		{"dns", []string{"network"}, (*Host).dns, ""},
		{"router", []string{"network"}, (*Host).router, ""},
		{"idling", []string{"network"}, (*Host).idling, ""},
		// The network component has already created the Node. If the Node did not exist, the
		// upstream proxy would retry only after a second.
		{"proxy", []string{"network"}, (*Host).proxy, ""},
	}
}

func (h *Host) apiAccess() (component.Component, error) {
	access := &node.APIAccess{}
	type grant struct{ kubeconfig, path string }
	grants := []grant{
		{h.credentials.AgentKubeconfig, "/api/v1/nodes"},
		{h.credentials.AgentKubeconfig, "/apis/network.openshift.io/v1/egressnetworkpolicies"},
		{h.credentials.DNSKubeconfig, "/api/v1/namespaces"},
		{h.credentials.IdlingKubeconfig, "/api/v1/services"},
	}
	if h.runsRouter() {
		grants = append(grants, grant{h.credentials.RouterKubeconfig, "/apis/route.openshift.io/v1/routes"})
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
	programs, err := h.programs()
	if err != nil {
		return nil, err
	}
	client, err := pki.NewClient(h.credentials.NodeKubeconfig)
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
		Store: image.Store{Socket: h.ContainerdSocket()}, Socket: h.imageSocket(),
		RegistryConfigDir: h.Node.Slipway.RegistryConfigDirectory, SignaturePolicy: h.Node.Slipway.SignaturePolicy,
		SignatureStores: h.Node.Slipway.SignatureDirectory, Dialer: h.outbound(),
		Directory: h.Node.Slipway.ContainerdDirectory, Reserve: reserve, HasPullRecord: records.Has,
	}, nil
}

// hostReport returns the component that publishes the host's state on its Node object.
func (h *Host) hostReport() (component.Component, error) {
	client, err := pki.NewClient(h.credentials.NodeKubeconfig)
	if err != nil {
		return nil, err
	}
	return &hostreport.Reporter{
		Client: client, Node: h.Node.NodeName, Status: supervisor.NewClient(h.Socket()).Status,
		CertificateDirs: []string{h.path("pki")},
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
		PodGroup: filepath.Join(h.Node.Slipway.CgroupRoot, "kubepods"), LogDir: h.podLogs(),
	}, nil
}

func (h *Host) kubelet() (component.Component, error) {
	kubelet, err := h.newKubelet(h.Node)
	if err != nil {
		return nil, err
	}
	bundle := h.path("node", "kubelet-client-ca.crt")
	if kubelet.ClientCAFile, err = node.ClientCAFile(h.credentials.NodeCA, h.Node.KubeletClientCA(), bundle); err != nil {
		return nil, err
	}
	return kubelet, nil
}

// newKubelet returns this host's kubelet, which is configured by a NodeConfig.
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
	prober := volumeplugin.NewProber(h.drivers(), volumeplugin.Options{InUse: h.usesDriver, Attachments: h.attachments()})
	return &node.Kubelet{
		NodeName:          c.NodeName,
		NodeIP:            h.address.AsSlice(),
		SecondNodeIP:      h.second,
		BindAddress:       net.ParseIP(bind),
		Port:              port,
		CertFile:          h.credentials.KubeletServer.Cert,
		KeyFile:           h.credentials.KubeletServer.Key,
		ClientCAFile:      h.credentials.NodeCA,
		Joined:            h.Joined(),
		Kubeconfig:        h.credentials.NodeKubeconfig,
		RootDirectory:     c.VolumeDirectory,
		GroupQuota:        c.GroupQuota(),
		CertDirectory:     h.path("pki", "kubelet"),
		PodLogsDirectory:  h.podLogs(),
		Shutdown:          node.Shutdown{Period: c.Slipway.Shutdown.Period.Duration, Critical: c.Slipway.Shutdown.Critical.Duration},
		RuntimeSocket:     h.ContainerdSocket(),
		ImageSocket:       h.imageSocket(),
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
		Kubeconfig:    h.credentials.ProxyKubeconfig,
		Bridge:        bridge,
		Pods:          h.Master.PodNetworks(),
		HealthAddress: h.Node.ProxyHealthAddress(),
		SyncPeriod:    h.Node.SyncPeriod(),
		Arguments:     arguments.Map(h.Node.ProxyFlags()),
	}, nil
}
