package platform

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/slipway-platform/slipway/apiserver"
	"github.com/slipway-platform/slipway/config"
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
	// masterKubeconfig reads the connection of the control plane's controllers to the API server.
	masterKubeconfig func() (*rest.Config, error)
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
	h.masterKubeconfig = sync.OnceValues(func() (*rest.Config, error) {
		return readKubeconfig(h.credentials.MasterKubeconfig)
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

// client returns the connection of the control plane's controllers to the API server.
func (h *Host) client() (*rest.Config, error) {
	config, err := h.masterKubeconfig()
	if err != nil {
		return nil, err
	}
	return rest.CopyConfig(config), nil
}

// limitedClient returns the same connection with a limit of requests a second.
func (h *Host) limitedClient(qps float32, burst int) (*rest.Config, error) {
	config, err := h.client()
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = qps, burst
	return config, nil
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
