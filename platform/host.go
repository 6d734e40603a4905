package platform

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/slipway-platform/slipway/apigroup/metrics"
	"github.com/slipway-platform/slipway/apiserver"
	"github.com/slipway-platform/slipway/config"
	"github.com/slipway-platform/slipway/controller"
	"github.com/slipway-platform/slipway/controller/hosts"
	"github.com/slipway-platform/slipway/controller/masters"
	"github.com/slipway-platform/slipway/internal/payload"
	"github.com/slipway-platform/slipway/internal/registryclient"
	"github.com/slipway-platform/slipway/kube/volumeplugin"
	"github.com/slipway-platform/slipway/network/policy"
	"github.com/slipway-platform/slipway/network/vxlan"
	"github.com/slipway-platform/slipway/pki"
	"github.com/slipway-platform/slipway/platform/record"
	"github.com/slipway-platform/slipway/storage/flexvolume"
)

// Host is this machine as described by its configuration. Components are created from the paths,
// addresses and names that Host provides. No other type derives them from the configuration.
type Host struct {
	*config.Config
	file string // absolute path of the command line's configuration file, or ""
	// membership is nil unless the host has joined another host's cluster.
	membership *record.Membership
	// cluster is nil unless this host is one of several masters.
	cluster *record.Cluster
	// leadership elects the master that runs the controllers. It is nil if this is the only master.
	leadership *controller.Leadership
	// mastersSettings compares the settings of several masters. It is nil on the only master.
	mastersSettings *masters.Settings
	// masterServes has a value after the balancer has seen that a master has started.
	masterServes chan struct{}
	// expand closes the channel expanded when a second master joins the only master. This stops the
	// control plane.
	expand   func()
	expanded chan struct{}

	address     netip.Addr // this machine's IPv4 address
	second      netip.Addr // this machine's IPv6 address, if pods have IPv6 addresses
	credentials *pki.Credentials
	process     string        // name of this process
	allReady    chan struct{} // closed when all components of the process are ready

	drivers func() *flexvolume.Registry
	// attachments returns this process's volume attachments, which several components share.
	attachments func() *volumeplugin.Attachments
	// recorder provides the API server's authentication and audit log to other servers in the
	// process.
	recorder *apiserver.Recorder
	// registries returns the pool that reads from registries that users specify. All reads share
	// one connection pool and one memory limit.
	registries func() *registryclient.Pool
	// programs unpacks the embedded programs when it is first called.
	programs func() (payload.Programs, error)
	// usage contains the resource usage of nodes and pods that the API server serves.
	usage *metrics.Usage
	// dnsNames contains the DNS names in egress firewalls, which the pods' DNS server resolves.
	dnsNames *policy.Names
	// tunnel is the node's VXLAN device, which two components share.
	tunnel *vxlan.Tunnel
	// deps contains the clients and caches that the control plane's controllers share.
	deps *controller.Deps
	// hostAddresses contains the addresses of all hosts in the cluster. Users must not be able to
	// connect to these addresses through the platform.
	hostAddresses *hosts.Addresses
}

// Load reads a host's configuration. If file is not empty, Load reads it instead of the
// configuration files in the data directory.
func Load(dataDir, file string) (*Host, error) {
	c, err := config.Load(dataDir, file)
	if err != nil {
		return nil, err
	}
	return New(c, file)
}

// New returns the host that the configuration describes.
func New(c *config.Config, file string) (*Host, error) {
	h := &Host{
		Config: c, allReady: make(chan struct{}), expanded: make(chan struct{}), masterServes: make(chan struct{}, 1),
		recorder: &apiserver.Recorder{}, dnsNames: policy.NewNames(), hostAddresses: &hosts.Addresses{}, tunnel: &vxlan.Tunnel{},
	}
	h.dnsNames.IPv6 = c.Master != nil && c.Master.DualStack().Enabled()
	if file != "" {
		path, err := filepath.Abs(file)
		if err != nil {
			return nil, fmt.Errorf("find configuration file: %w", err)
		}
		h.file = path
	}
	h.expand = sync.OnceFunc(func() { close(h.expanded) })
	h.usage = metrics.NewUsage()
	var err error
	if h.membership, err = record.ReadMembership(h.membershipFile()); err != nil {
		return nil, err
	}
	if h.cluster, err = record.ReadCluster(h.clusterFile()); err != nil {
		return nil, err
	}
	h.programs = sync.OnceValues(func() (payload.Programs, error) { return payload.Unpack(h.path("bin")) })
	h.registries = sync.OnceValue(func() *registryclient.Pool {
		return registryclient.NewPool(h.outbound(), h.Master.ImagePolicyConfig.MaxImagesBulkImportedPerRepository)
	})
	h.drivers = sync.OnceValue(func() *flexvolume.Registry {
		return &flexvolume.Registry{
			Dir: h.Node.VolumePluginDir(), KeepDir: h.DriverCopies(h.process), Settings: h.DriverSettings,
		}
	})
	h.attachments = sync.OnceValue(func() *volumeplugin.Attachments {
		return &volumeplugin.Attachments{Dir: h.path("flexvolume", "attached", h.process)}
	})
	return h, nil
}

// DriverSettings returns the settings for a FlexVolume driver.
func (h *Host) DriverSettings(driver string) flexvolume.Settings {
	configured := h.Node.Slipway.FlexVolume[driver]
	settings := flexvolume.Settings{
		Timeouts:    map[flexvolume.Operation]time.Duration{},
		Concurrency: configured.Concurrency,
		VolumeName:  flexvolume.Naming(configured.VolumeName),
	}
	for op, timeout := range configured.Timeouts {
		settings.Timeouts[flexvolume.Operation(op)] = timeout.Duration
	}
	return settings
}

// connect creates the controllers' clients and caches.
func (h *Host) connect() error {
	config, err := pki.ReadKubeconfig(h.credentials.MasterKubeconfig)
	if err != nil {
		return err
	}
	if h.deps, err = controller.NewDeps(config); err != nil || h.cluster == nil {
		return err
	}
	elections, err := kubernetes.NewForConfig(h.limitedConfig(20, 40))
	if err != nil {
		return fmt.Errorf("create client of elections: %w", err)
	}
	h.leadership = &controller.Leadership{Client: elections, Identity: h.Node.NodeName}
	return nil
}

// limitedConfig returns a client configuration for the control plane with a separate rate limit, in
// requests per second.
func (h *Host) limitedConfig(qps float32, burst int) *rest.Config {
	config := rest.CopyConfig(h.deps.Config)
	config.RateLimiter, config.QPS, config.Burst = nil, qps, burst
	return config
}

// AdminClient returns the administrator's client configuration for the API server.
func (h *Host) AdminClient() (*rest.Config, error) { return pki.ReadKubeconfig(h.AdminKubeconfig()) }

// StatusClient returns the client configuration that this host uses to read nodes: the
// administrator's configuration or, on a joined host, the node's.
func (h *Host) StatusClient() (*rest.Config, error) {
	if h.Joined() {
		return pki.ReadKubeconfig(h.member().Files().NodeKubeconfig)
	}
	return h.AdminClient()
}
