package nodeprocess

import (
	"net"
	"slices"
	"strconv"

	"github.com/slipway-platform/slipway/node/balancer"
	"github.com/slipway-platform/slipway/pki"
	"github.com/slipway-platform/slipway/supervisor/component"
)

// balancer returns the component that connects the node's components to the API servers of all
// masters. If there is only one master, its node requires no balancer. The node restarts when other
// masters join the cluster.
func (h *Host) balancer() (component.Component, error) {
	_, port := h.Master.APIAddress()
	if h.Joined() {
		return h.newBalancer(&balancer.Balancer{
			Address: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), Servers: h.Membership.Masters, Public: h.Master.PublicAddress(),
			Save: h.saveMembers, Serves: h.masterServes,
		})
	}
	if !h.SeveralMasters() {
		return balancer.Single{Record: h.ClusterFile()}, nil
	}
	own := net.JoinHostPort(h.Address.String(), strconv.Itoa(port))
	servers, err := h.mastersFile().Read()
	if err != nil {
		return nil, err
	}
	if !slices.Contains(servers, own) {
		servers = append(servers, own)
	}
	return h.newBalancer(&balancer.Balancer{
		Address: h.Node.Slipway.BalancerAddress, Servers: servers, Preferred: own, Save: h.mastersFile().Save,
	})
}

// newBalancer configures a balancer's connections to the API servers.
func (h *Host) newBalancer(b *balancer.Balancer) (component.Component, error) {
	config, err := pki.ReadKubeconfig(h.Credentials.ProxyKubeconfig)
	if err != nil {
		return nil, err
	}
	return b, b.Connect(config)
}

// saveMembers stores the API server addresses in a joined host's membership record.
func (h *Host) saveMembers(servers []string) error {
	next := *h.Membership
	next.Masters = servers
	return next.Write(h.MembershipFile())
}

// mastersFile returns the file that contains the API servers' last known addresses on a master's
// node.
func (h *Host) mastersFile() balancer.ServerFile {
	return balancer.ServerFile(h.Path("node", "masters.json"))
}
