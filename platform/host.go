package platform

import (
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/slipway-platform/slipway/config"
	"github.com/slipway-platform/slipway/internal/payload"
	"github.com/slipway-platform/slipway/internal/registryclient"
	volumeplugin "github.com/slipway-platform/slipway/kube/flexvolume"
	"github.com/slipway-platform/slipway/network/hostaddr"
	"github.com/slipway-platform/slipway/pki"
	"github.com/slipway-platform/slipway/storage/flexvolume"
)

// host is this machine as the configuration describes it: every path, address and name that the parts
// are made with. It is the only place that knows how they follow from the configuration.
type host struct {
	*config.Config
	dataDir string
	file    string // the configuration file that was named on the command line, absolute, or empty

	address  netip.Addr // of this machine, found at start
	identity *pki.Identity
	role     string        // the process that this is
	calm     chan struct{} // closed when every part of the process is ready
	adjusted []adjustment  // what follows a change of the configuration
	drivers  func() *flexvolume.Registry
	// attachments are those that this process makes; one set, which several parts share.
	attachments func() *volumeplugin.Attachments
	// remotes is how the process reads registries that users name: one pool of connections and of
	// memory.
	remotes func() *registryclient.Pool
	// programs unpacks the small programs at its first call; later ones have its result.
	programs func() (payload.Programs, error)
}

func newHost(c *config.Config, file string) (*host, error) {
	h := &host{Config: c, dataDir: c.DataDir, calm: make(chan struct{})}
	if file != "" {
		absolute, err := filepath.Abs(file)
		if err != nil {
			return nil, fmt.Errorf("find configuration file: %w", err)
		}
		h.file = absolute
	}
	h.programs = sync.OnceValues(func() (payload.Programs, error) { return payload.Unpack(h.binDir()) })
	h.remotes = sync.OnceValue(func() *registryclient.Pool {
		return registryclient.NewPool(h.outbound(), h.Master.ImagePolicyConfig.MaxImagesBulkImportedPerRepository)
	})
	h.drivers = sync.OnceValue(func() *flexvolume.Registry {
		return &flexvolume.Registry{
			Dir: h.Node.VolumePluginDir(), KeepDir: h.keptDrivers(h.role), Settings: h.driverSettings,
		}
	})
	h.attachments = sync.OnceValue(func() *volumeplugin.Attachments {
		return &volumeplugin.Attachments{Dir: h.path("flexvolume", "attached", h.role)}
	})
	return h, nil
}

// Where things lie below the data directory.

func (h *host) path(names ...string) string {
	return filepath.Join(append([]string{h.dataDir}, names...)...)
}
func (h *host) runDir() string                    { return h.Node.Slipway.RunDirectory }
func (h *host) socket() string                    { return filepath.Join(h.runDir(), "slipway.sock") }
func (h *host) etcdSocket() string                { return filepath.Join(h.runDir(), "etcd.sock") }
func (h *host) containerdState() string           { return filepath.Join(h.runDir(), "containerd") }
func (h *host) imageSocket() string               { return filepath.Join(h.runDir(), "images.sock") }
func (h *host) containerdSocket() string          { return filepath.Join(h.runDir(), "containerd.sock") }
func (h *host) logFile(process string) string     { return h.path("log", process+".log") }
func (h *host) adminKubeconfig() string           { return h.path("admin.kubeconfig") }
func (h *host) cniConfDir() string                { return h.path("cni", "conf") }
func (h *host) cniStateDir() string               { return h.path("cni", "state") }
func (h *host) keptDrivers(process string) string { return h.path("flexvolume", process) }
func (h *host) binDir() string                    { return h.path("bin") }

// locate finds the machine's address; a machine without any gets one of its own, so that a cluster runs
// without a network too.
func (h *host) locate() error {
	preferred := h.Node.NodeIP
	address, err := hostaddr.HostAddress(preferred, h.ownDevices()...)
	if err != nil && preferred == "" {
		address, err = hostaddr.AssignOffline(offlineDevice)
	}
	if err != nil {
		return err
	}
	h.address = address
	return nil
}

// offlineDevice holds the address of a machine that has none.
const offlineDevice = "slipway-offline"

// ownDevices are network devices whose addresses say nothing about the machine.
func (h *host) ownDevices() []string {
	return []string{h.Node.Slipway.Bridge, h.Node.Slipway.DNSDevice}
}

// driverSettings are those of one FlexVolume driver.
func (h *host) driverSettings(driver string) flexvolume.Settings {
	given := h.Node.Slipway.FlexVolume[driver]
	settings := flexvolume.Settings{
		Timeouts:    map[flexvolume.Operation]time.Duration{},
		Concurrency: given.Concurrency,
		VolumeName:  flexvolume.Naming(given.VolumeName),
	}
	for op, timeout := range given.Timeouts {
		settings.Timeouts[flexvolume.Operation(op)] = timeout.Duration
	}
	return settings
}

// kubeconfig reads a client's identity.
func kubeconfig(path string) (*rest.Config, error) {
	client, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig %q: %w", path, err)
	}
	return client, nil
}

// nextSteps says what a person may want to do with a cluster that runs. Only a terminal shows the
// developer's password: other outputs end up in logs, which more people can read than the password file.
func (h *host) nextSteps(out io.Writer, terminal bool) {
	fmt.Fprintf(out, `Try:
  %[1]s status
  %[1]s oc get nodes
  export KUBECONFIG=%[2]s
`, os.Args[0], h.adminKubeconfig())
	if password, err := os.ReadFile(h.developerPassword()); err == nil && h.DeveloperFile() != "" {
		secret := fmt.Sprintf(`"$(cat %s)"`, h.developerPassword())
		if terminal {
			secret = strings.TrimSpace(string(password))
		}
		_, port := h.Master.APIAddress()
		fmt.Fprintf(out, "  %s oc login -u %s -p %s https://localhost:%d\n", os.Args[0], developer, secret, port)
	}
	fmt.Fprintf(out, `A first page:
  %[1]s oc new-project hello
  %[1]s oc new-app httpd-example
  %[1]s oc rollout status dc/httpd-example
  curl -H "Host: $(%[1]s oc get route httpd-example -o jsonpath={.spec.host})" http://localhost/
`, os.Args[0])
}
