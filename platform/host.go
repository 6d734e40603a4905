package platform

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/slipway-platform/slipway/apigroup/metrics"
	"github.com/slipway-platform/slipway/apiserver"
	"github.com/slipway-platform/slipway/config"
	"github.com/slipway-platform/slipway/controller"
	"github.com/slipway-platform/slipway/internal/payload"
	"github.com/slipway-platform/slipway/internal/registryclient"
	volumeplugin "github.com/slipway-platform/slipway/kube/flexvolume"
	"github.com/slipway-platform/slipway/pki"
	"github.com/slipway-platform/slipway/storage/flexvolume"
)

// Host is this machine as the configuration describes it: the paths, addresses and names with which
// components are created. No other type derives them from the configuration.
type Host struct {
	*config.Config
	file string // the configuration file of the command line, absolute, or ""

	address     netip.Addr // of this machine
	credentials *pki.Credentials
	process     string        // the name of this process
	allReady    chan struct{} // closed when all components of the process are ready

	drivers func() *flexvolume.Registry
	// attachments are the attachments of this process, which several components share.
	attachments func() *volumeplugin.Attachments
	// recorder gives other servers of the process the authentication and audit log of the API server.
	recorder *apiserver.Recorder
	// registries reads registries that users name, with one pool of connections and memory.
	registries func() *registryclient.Pool
	// programs unpacks the small programs at its first call.
	programs func() (payload.Programs, error)
	// usage is the usage of nodes and pods, which the API server serves.
	usage *metrics.Usage
	// deps are the clients and caches that the controllers of the control plane share.
	deps *controller.Deps
}

// Load reads the configuration of a host. file is a configuration file that replaces the files of
// the data directory, or "".
func Load(dataDir, file string) (*Host, error) {
	c, err := config.Load(dataDir, file)
	if err != nil {
		return nil, err
	}
	return New(c, file)
}

// New returns the host that a configuration describes.
func New(c *config.Config, file string) (*Host, error) {
	h := &Host{Config: c, allReady: make(chan struct{}), recorder: &apiserver.Recorder{}}
	if file != "" {
		path, err := filepath.Abs(file)
		if err != nil {
			return nil, fmt.Errorf("find configuration file: %w", err)
		}
		h.file = path
	}
	h.usage = metrics.NewUsage()
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

// DriverSettings returns the settings of a FlexVolume driver.
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

// connect creates the clients and caches of the controllers.
func (h *Host) connect() error {
	config, err := readKubeconfig(h.credentials.MasterKubeconfig)
	if err != nil {
		return err
	}
	h.deps, err = controller.NewDeps(config)
	return err
}

// limitedConfig returns the configuration of a client of the control plane with its own limit of
// requests a second.
func (h *Host) limitedConfig(qps float32, burst int) *rest.Config {
	config := rest.CopyConfig(h.deps.Config)
	config.RateLimiter, config.QPS, config.Burst = nil, qps, burst
	return config
}

// AdminClient returns the connection of the administrator to the API server.
func (h *Host) AdminClient() (*rest.Config, error) { return readKubeconfig(h.AdminKubeconfig()) }

func readKubeconfig(path string) (*rest.Config, error) {
	client, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig %q: %w", path, err)
	}
	return client, nil
}
