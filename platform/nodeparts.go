package platform

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/slipway-platform/slipway/apigroup/apps/rollout"
	"github.com/slipway-platform/slipway/internal/arguments"
	volumeplugin "github.com/slipway-platform/slipway/kube/flexvolume"
	"github.com/slipway-platform/slipway/network/agent"
	"github.com/slipway-platform/slipway/network/dns"
	"github.com/slipway-platform/slipway/node"
	"github.com/slipway-platform/slipway/node/disk"
	"github.com/slipway-platform/slipway/node/image"
	"github.com/slipway-platform/slipway/storage/flexvolume"
)

// The parts of the node, made from the configuration.

func (h *host) api() (Component, error) {
	part := &api{}
	for _, own := range []struct{ kubeconfig, path string }{
		{h.identity.AgentKubeconfig, "/api/v1/nodes"},
		{h.identity.DNSKubeconfig, "/api/v1/namespaces"},
		{h.identity.IdlingKubeconfig, "/api/v1/services"},
		{h.identity.RouterKubeconfig, "/apis/route.openshift.io/v1/routes"},
	} {
		client, err := kubeconfig(own.kubeconfig)
		if err != nil {
			return nil, err
		}
		part.grants = append(part.grants, grant{client, own.path})
	}
	return part, nil
}

func (h *host) images() (Component, error) {
	programs, err := h.programs()
	if err != nil {
		return nil, err
	}
	client, err := kubeconfig(h.identity.NodeKubeconfig)
	if err != nil {
		return nil, err
	}
	return image.Loader{
		Store:       image.Store{Socket: h.containerdSocket()},
		Pause:       programs.Pause,
		Runc:        programs.Runc,
		Busybox:     busybox,
		Executable:  "/proc/self/exe",
		HAProxy:     findHAProxy,
		Keepalived:  findKeepalived,
		Archives:    h.Node.Slipway.ImageDirectory,
		Calm:        h.calm,
		HasDeployer: func(ctx context.Context) error { return label(ctx, client, h.Node.NodeName, rollout.ImageLabel) },
	}, nil
}

// imageService pulls the images of pods.
func (h *host) imageService() (Component, error) {
	return &image.Service{
		Store: image.Store{Socket: h.containerdSocket()}, Socket: h.imageSocket(),
		RegistryConfigDir: h.Node.Slipway.RegistryConfigDirectory, Dialer: h.outbound(),
	}, nil
}

// label puts a label on a node, with the rights of its kubelet.
func label(ctx context.Context, config *rest.Config, node, name string) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("connect to label node %q: %w", node, err)
	}
	return patchLabel(ctx, client, node, name, `"true"`)
}

// patchLabel sets a label of a node to a value in JSON; null removes it.
func patchLabel(ctx context.Context, client kubernetes.Interface, node, name, value string) error {
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%s}}}`, name, value)
	if _, err := client.CoreV1().Nodes().Patch(ctx, node, types.StrategicMergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("label node %q: %w", node, err)
	}
	return nil
}

// busybox is where Debian's busybox-static installs it.
const busybox = "/bin/busybox"

func (h *host) kubelet() (Component, error) {
	bind, port := h.Node.KubeletAddress()
	manifests, _ := h.Node.ManifestDir()
	reserve, err := node.ReserveOf(h.Node.VolumeDirectory)
	if err != nil {
		return nil, err
	}
	return &node.Kubelet{
		NodeName:          h.Node.NodeName,
		NodeIP:            h.address.AsSlice(),
		BindAddress:       net.ParseIP(bind),
		Port:              port,
		CertFile:          h.identity.KubeletServer.Cert,
		KeyFile:           h.identity.KubeletServer.Key,
		ClientCAFile:      h.identity.NodeCA,
		Kubeconfig:        h.identity.NodeKubeconfig,
		RootDirectory:     h.Node.VolumeDirectory,
		CertDirectory:     h.path("pki", "kubelet"),
		PodLogsDirectory:  h.podLogs(),
		RuntimeSocket:     h.containerdSocket(),
		ImageSocket:       h.imageSocket(),
		CgroupRoot:        h.Node.Slipway.CgroupRoot,
		Reserve:           reserve,
		DNSIP:             h.Node.ResolverIP(),
		Domain:            h.Node.DNSDomain,
		ResolvConf:        node.HostResolvConf(),
		ManifestDirectory: manifests,
		VolumePluginDir:   h.Node.VolumePluginDir(),
		Prober:            volumeplugin.NewProber(h.drivers(), volumeplugin.Options{InUse: h.usesDriver, Attachments: h.attachments()}),
		Arguments:         arguments.Map(h.Node.KubeletArguments),
	}, nil
}

// podLogs holds what containers print.
func (h *host) podLogs() string { return filepath.Join(h.Node.VolumeDirectory, "pod-logs") }

// diskGuard protects the disks of etcd and of the platform's files.
func (h *host) diskGuard() (Component, error) {
	return &disk.Guard{
		Dirs:     []string{h.dataDir, h.Master.EtcdDirectory()},
		PodGroup: filepath.Join(h.Node.Slipway.CgroupRoot, "kubepods"), LogDir: h.podLogs(),
	}, nil
}

func (h *host) flexVolumeCleanup() (Component, error) {
	return &volumeplugin.DeviceCleanup{Registry: h.drivers(), KubeletRoot: h.Node.VolumeDirectory, Attachments: h.attachments()}, nil
}

// usesDriver says whether a volume of a FlexVolume driver may be in use on this node.
func (h *host) usesDriver(driver string) bool {
	return flexvolume.Uses(h.Node.VolumeDirectory, driver)
}

func (h *host) proxy() (Component, error) {
	return &node.Proxy{
		NodeName:      h.Node.NodeName,
		Kubeconfig:    h.identity.ProxyKubeconfig,
		Bridge:        h.Node.Slipway.Bridge,
		HealthAddress: h.proxyHealthAddress(),
		Arguments:     arguments.Map(h.Node.ProxyArguments),
	}, nil
}

func (h *host) network() (Component, error) {
	config, err := kubeconfig(h.identity.AgentKubeconfig)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	dnsIP, err := netip.ParseAddr(h.dnsHost())
	if err != nil {
		return nil, err
	}
	programs, err := h.programs()
	if err != nil {
		return nil, err
	}
	cluster, _ := h.Master.ClusterNetwork()
	return &agent.Agent{
		NodeName:    h.Node.NodeName,
		Client:      client,
		Bridge:      h.Node.Slipway.Bridge,
		NFTTable:    h.Node.Slipway.NFTTable,
		ClusterCIDR: cluster,
		ServiceCIDR: h.Master.ServiceNetwork(),
		ConfDir:     h.cniConfDir(),
		BinDir:      programs.Dir,
		StateDir:    h.cniStateDir(),
		MTU:         int(h.Node.NetworkConfig.MTU),
		DNSDevice:   h.Node.Slipway.DNSDevice,
		DNSIP:       dnsIP,
	}, nil
}

func (h *host) dnsHost() string {
	host, _, err := net.SplitHostPort(h.Node.DNSAddress())
	if err != nil {
		return ""
	}
	return host
}

func (h *host) dns() (Component, error) {
	client, err := kubeconfig(h.identity.DNSKubeconfig)
	if err != nil {
		return nil, err
	}
	return &dns.Server{
		Address: h.Node.DNSAddress(), Domain: h.Node.DNSDomain, Config: client, Upstreams: h.Node.Nameservers(),
	}, nil
}
