// Package host describes this machine from its configuration: paths, addresses, credentials, and
// its role in the cluster. It runs no components.
package host

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"sync"

	"k8s.io/client-go/rest"

	"github.com/slipway-platform/slipway/config"
	"github.com/slipway-platform/slipway/controller/hosts"
	"github.com/slipway-platform/slipway/internal/payload"
	"github.com/slipway-platform/slipway/internal/registryclient"
	"github.com/slipway-platform/slipway/pki"
	"github.com/slipway-platform/slipway/platform/record"
)

// Names of the supervisor and its processes. The processes start in this order and stop in reverse
// order.
const (
	Supervisor   = "slipway"
	ControlPlane = "control-plane"
	Containerd   = "containerd"
	Node         = "node"
)

// Host is this machine as described by its configuration. Components are created from the paths,
// addresses and names that Host provides. No other type derives them from the configuration.
type Host struct {
	*config.Config
	File string // absolute path of the command line's configuration file, or ""
	// Membership is nil unless the host has joined another host's cluster.
	Membership *record.Membership
	// Cluster is nil unless this host is one of several masters.
	Cluster *record.Cluster

	Address       netip.Addr // this machine's IPv4 address
	SecondAddress netip.Addr // this machine's IPv6 address, if pods have IPv6 addresses
	Credentials   *pki.Credentials

	// HostAddresses contains the addresses of all hosts in the cluster. Users must not be able to
	// connect to these addresses through the platform.
	HostAddresses *hosts.Addresses
	// Registries returns the pool that reads from registries that users specify. All reads share
	// one connection pool and one memory limit.
	Registries func() *registryclient.Pool
	// Programs unpacks the embedded programs the first time it is called.
	Programs func() (payload.Programs, error)
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
	h := &Host{Config: c, HostAddresses: &hosts.Addresses{}}
	if file != "" {
		path, err := filepath.Abs(file)
		if err != nil {
			return nil, fmt.Errorf("find configuration file: %w", err)
		}
		h.File = path
	}
	var err error
	if h.Membership, err = record.ReadMembership(h.MembershipFile()); err != nil {
		return nil, err
	}
	if h.Cluster, err = record.ReadCluster(h.ClusterFile()); err != nil {
		return nil, err
	}
	h.Programs = sync.OnceValues(func() (payload.Programs, error) { return payload.Unpack(h.Path("bin")) })
	h.Registries = sync.OnceValue(func() *registryclient.Pool {
		return registryclient.NewPool(h.Outbound(), h.Master.ImagePolicyConfig.MaxImagesBulkImportedPerRepository)
	})
	return h, nil
}

// AdminClient returns the administrator's client configuration for the API server.
func (h *Host) AdminClient() (*rest.Config, error) { return pki.ReadKubeconfig(h.AdminKubeconfig()) }

// StatusClient returns the client configuration that this host uses to read nodes: the
// administrator's configuration or, on a joined host, the node's.
func (h *Host) StatusClient() (*rest.Config, error) {
	if h.Joined() {
		return pki.ReadKubeconfig(h.Member().Files().NodeKubeconfig)
	}
	return h.AdminClient()
}
