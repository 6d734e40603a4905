package platform

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"time"

	"k8s.io/client-go/rest"

	"github.com/slipway-platform/slipway/internal/atomicfile"
	"github.com/slipway-platform/slipway/node/balancer"
	"github.com/slipway-platform/slipway/node/nodeconfig"
	"github.com/slipway-platform/slipway/supervisor/component"
)

// expansionInterval is how often the node of the only master checks whether there are others.
const expansionInterval = 2 * time.Second

// nodeURL returns the address of the API in the kubeconfigs of a master's node: the API server of
// the same host or, with several masters, the balancer.
func (h *Host) nodeURL() string {
	if h.SeveralMasters() {
		return "https://" + h.Node.Slipway.BalancerAddress
	}
	return h.apiURL("127.0.0.1")
}

// balancer connects the components of the node to the API servers of all masters. The node of the
// only master needs none, and starts again when the cluster gets others.
func (h *Host) balancer() (component.Component, error) {
	_, port := h.Master.APIAddress()
	if h.Joined() {
		return h.newBalancer(&balancer.Balancer{
			Address: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), Servers: h.membership.Masters, Save: h.saveMembers,
		})
	}
	if !h.SeveralMasters() {
		return expansion{h.clusterFile()}, nil
	}
	own := net.JoinHostPort(h.address.String(), strconv.Itoa(port))
	servers, err := h.knownMasters()
	if err != nil {
		return nil, err
	}
	if !slices.Contains(servers, own) {
		servers = append(servers, own)
	}
	return h.newBalancer(&balancer.Balancer{
		Address: h.Node.Slipway.BalancerAddress, Servers: servers, Preferred: own, Save: h.saveMasters,
	})
}

// newBalancer completes a balancer: it checks the API servers as an anonymous client, and follows
// the list of them.
func (h *Host) newBalancer(b *balancer.Balancer) (component.Component, error) {
	config, err := readKubeconfig(h.credentials.ProxyKubeconfig)
	if err != nil {
		return nil, err
	}
	client, err := clientFor(h.credentials.ProxyKubeconfig)
	if err != nil {
		return nil, err
	}
	transport, err := rest.TransportFor(rest.AnonymousClientConfig(config))
	if err != nil {
		return nil, fmt.Errorf("create client of API servers: %w", err)
	}
	b.HTTP, b.Watch = &http.Client{Transport: transport}, balancer.WatchService(client, "kubernetes")
	return b, nil
}

// saveMembers stores the API servers in the record of a joined host.
func (h *Host) saveMembers(servers []string) error {
	next := *h.membership
	next.Masters = servers
	return next.Write(h.membershipFile())
}

// mastersFile contains the API servers that the node of a master found last, as a JSON list of
// host:port. The node needs them if it starts while its own API server does not serve.
func (h *Host) mastersFile() string { return h.path("node", "masters.json") }

func (h *Host) saveMasters(servers []string) error {
	data, err := json.Marshal(servers)
	if err != nil {
		return fmt.Errorf("encode API servers: %w", err)
	}
	return atomicfile.Write(h.mastersFile(), data, 0o600)
}

func (h *Host) knownMasters() (servers []string, err error) {
	data, err := os.ReadFile(h.mastersFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &servers)
	}
	if err != nil {
		return nil, fmt.Errorf("read API servers %q: %w; remove the file", h.mastersFile(), err)
	}
	return servers, nil
}

// expansion is the balancer of the only master. It ends with ErrRestart when file, the record of
// several masters, exists.
type expansion struct{ file string }

func (expansion) Name() string { return "balancer" }

func (e expansion) Run(ctx context.Context, ready func()) error {
	ready()
	ticker := time.NewTicker(expansionInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if _, err := os.Stat(e.file); err == nil {
			return nodeconfig.ErrRestart
		}
	}
}
